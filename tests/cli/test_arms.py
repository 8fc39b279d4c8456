"""tailor arms: families by idea, and all that there is to say of one."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from runs import refused, tailor

from tailor import registry as registries
from tailor import strategies
from tailor.cli.arm_page import arm_page
from tailor.cli.arms import families_by_idea, needs_in_words
from tailor.errors import UnknownName
from tailor.strategies import Idea, ScoreStrategy


class Darkest(ScoreStrategy):
    """Smallest first probability first."""

    name = "darkest"

    def score(self, view):
        return view.rows(slice(None))[:, 0]


def test_every_family_stands_under_its_idea():
    groups = families_by_idea()
    listed = [name for names in groups.values() for name in names]
    assert sorted(listed) == sorted(strategies.registry)
    assert "margin" in groups[Idea.UNCERTAIN]
    assert "coreset" in groups[Idea.REPRESENTATIVE]
    assert "herding" in groups[Idea.BOTH]
    assert "galaxy" in groups[Idea.RARE_CLASSES]
    assert "most-likely-positive" in groups[Idea.SEARCH]
    assert "learned" in groups[Idea.LEARNED]
    said = " ".join(tailor("arms").split())
    places = [said.index(f"Arm families: {idea.value}") for idea in Idea]
    assert places == sorted(places)


def test_a_plugin_without_an_idea_is_listed_apart(monkeypatch):
    entry = EntryPoint("darkest", "darkest_arm:Darkest", "tailor.strategies")
    monkeypatch.setitem(__import__("sys").modules, "darkest_arm", SimpleNamespace(Darkest=Darkest))
    entries = {"tailor.strategies": [entry]}
    monkeypatch.setattr(registries, "entry_points", lambda group: entries.get(group, []))
    groups = families_by_idea()
    assert groups[None] == ["darkest"]
    assert list(groups)[-1] is None
    assert "not said" in str(arm_page("darkest")[1])


def test_needs_are_said_in_words():
    assert needs_in_words(strategies.registry.find("badge")) == "probabilities, features"
    dropout = needs_in_words(strategies.registry.find("bald"))
    assert dropout == "probabilities, dropout passes (dropout=)"


@pytest.mark.parametrize("name", [*strategies.registry.builtin, "tailor", "fixed"])
def test_a_page_says_formula_cost_and_use(name):
    page = [str(block) for block in arm_page(name)]
    text = "\n".join(page)
    for part in ("Formula", "Cost", "When to use"):
        assert f"[bold]{part}[/]" in text
    if name in strategies.registry:
        assert "[bold]Example[/]" in text
        assert ">>> " in text


def test_options_come_with_defaults_and_meaning():
    said = " ".join(tailor("arms", "seals(galaxy, neighbours=50)").split())
    assert "seals(galaxy, neighbours=50)" in said
    assert "Idea: rare classes · for multi-class and multi-label tasks" in said
    assert "needs: probabilities, features" in said
    assert "100" in said
    assert "of each labelled example" in said
    assert 'strategies = ["seals(galaxy, neighbours=50)"]' in said
    assert "It has no options." in tailor("arms", "margin")
    assert 'selector = "two-level"' in tailor("arms", "two-level")


def test_a_name_that_nothing_has():
    with pytest.raises(UnknownName, match="arm family or selector 'marign': did you mean 'margin'"):
        arm_page("marign")
    assert "did you mean 'margin'" in refused("arms", "marign")
