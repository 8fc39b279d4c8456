"""Label configs that can be worked with, and what is said of those that can't."""

from __future__ import annotations

import pytest
from studio_runs import label_config

from tailor.errors import InputError
from tailor.integrations.label_studio.label_config import LabelConfig


def read(inside, subject='<Image name="s" value="$photo"/>'):
    return LabelConfig.read(f"<View>{subject}{inside}</View>")


def choices(attributes="", inside='<Choice value="a"/><Choice value="b"/>'):
    return f'<Choices name="c" toName="s" {attributes}>{inside}</Choices>'


@pytest.mark.parametrize("shows", ["image", "text"])
@pytest.mark.parametrize(
    ("choice", "kind"),
    [("single", "multi-class"), ("single-radio", "multi-class"), ("multiple", "multi-label")],
)
def test_what_can_be_worked_with(shows, choice, kind):
    config = LabelConfig.read(label_config(shows, choice, ["cat", "dog"]))
    expected = LabelConfig(kind, ("cat", "dog"), shows, shows, (), "answer", "subject")
    assert config == expected


def test_odds_and_ends():
    inside = choices("", '<Choice value="a" alias="A"/><View><Choice value="b" hotkey="2"/></View>')
    config = read(
        f'<Style>.x {{}}</Style><Header value="Which?"/><Text name="t" value="$title"/>{inside}'
    )
    assert config.classes == ("A", "b")  # the alias is what annotations hold
    assert config.kind == "multi-class"  # single is the default
    assert (config.key, config.other_keys) == ("photo", ("title",))


def test_answers_are_written_and_read():
    config = read(choices())
    assert config.chosen(config.result(["b", "a"])) == ("a", "b")
    assert config.chosen(config.result([])) == ()
    other = {"from_name": "elsewhere", "value": {"choices": ["x"]}}
    assert config.chosen([other, {"from_name": "c", "value": {"choices": ["gone"]}}]) == ("gone",)
    assert config.chosen([{"from_name": "c"}]) == ()


IMAGE, TEXT = '<Image name="s" value="$i"/>', '<Text name="s" value="$t"/>'
NESTED = '<Choice value="a"><Choice value="b"/></Choice>'


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<View", "no XML"),
        ('<Audio name="s" value="$a"/>' + choices(), "<Audio>: TAILOR works with one <Choices>"),
        (
            IMAGE + '<RectangleLabels name="r" toName="s"/><Rating name="q" toName="s"/>',
            "<Rating>, <RectangleLabels>",
        ),
        (IMAGE, "0 <Choices>"),
        (IMAGE + choices() + choices(), "2 <Choices>"),
        ('<Image name="x" value="$i"/>' + choices(), "points to 's'"),
        ('<Image name="s" value="photo.jpg"/>' + choices(), "a field of the task's data"),
        ('<Image name="s" valueList="$i"/>' + choices(), "valueList"),
        ('<Text name="s" value="$t" valueType="url"/>' + choices(), "hold the text itself"),
        (TEXT + choices('choice="maybe"'), "one of single, single-radio, multiple"),
        (TEXT + choices('perRegion="true"'), "perRegion"),
        (TEXT + choices('value="$options"', ""), "value='.options'"),
        (TEXT + choices("", NESTED), "inside another"),
    ],
)
def test_what_can_not(inside, words):
    with pytest.raises(InputError, match=words):
        LabelConfig.read(f"<View>{inside}</View>")


def test_entities_are_not_expanded():
    with pytest.raises(InputError, match="entities"):
        LabelConfig.read('<!DOCTYPE x [<!ENTITY a "b">]><View>&a;</View>')
