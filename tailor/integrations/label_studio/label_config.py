"""The label config of a Label Studio project: which classes there are, and how answers are written
in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from tailor.errors import InputError

#: Tags that only arrange or explain.
LAYOUT_TAGS = frozenset({"View", "Style", "Header", "Collapse", "Panel", "Markdown", "Filter"})
#: Tags that show something, with the kind of pool that holds it.
SUBJECT_TAGS = {"Image": "image", "Text": "text"}
#: The kind of task, by the attribute `choice` of <Choices>.
KIND_BY_CHOICE = {"single": "multi-class", "single-radio": "multi-class", "multiple": "multi-label"}
SUPPORTED = "TAILOR works with one <Choices> on an <Image> or a <Text>"


@dataclass(frozen=True)
class LabelConfig:
    """One question, with its choices, about a picture or a text.

    kind        "multi-class" or "multi-label"
    classes     the choices, in order
    shows       "image" or "text"
    key         the key in a task's data that holds the picture or text
    other_keys  further keys that a task's data must have
    control     the name of the <Choices>
    subject     the name of the <Image> or <Text>
    """

    kind: str
    classes: tuple[str, ...]
    shows: str
    key: str
    other_keys: tuple[str, ...]
    control: str
    subject: str

    @classmethod
    def read(cls, xml: str) -> LabelConfig:
        """From the XML of a label config. Raises InputError that names what can't be worked with.

        >>> config = LabelConfig.read(
        ...     '<View><Text name="news" value="$text"/><Choices name="topic" toName="news">'
        ...     '<Choice value="sport"/><Choice value="science"/></Choices></View>'
        ... )
        >>> config.kind, config.classes, config.key
        ('multi-class', ('sport', 'science'), 'text')
        """
        tags = _parse(xml)
        control = _find_control(tags)
        subjects: dict[str | None, ElementTree.Element] = {}
        for tag in tags:
            if tag.tag in SUBJECT_TAGS:
                name = tag.get("name")
                subjects[name] = tag
        subject_name = control.get("toName")
        if subject_name not in subjects:
            raise InputError(
                f"<Choices> points to {subject_name!r}, which is no <Image> or <Text>: {SUPPORTED}"
            )
        subject = subjects.pop(subject_name)
        _check_attributes(control, subject)
        classes = _class_names(control)
        choice_kind = control.get("choice", "single")
        key = _data_key(subject)
        other_keys = [_data_key(tag) for tag in subjects.values()]
        return cls(
            kind=KIND_BY_CHOICE[choice_kind],
            classes=classes,
            shows=SUBJECT_TAGS[subject.tag],
            key=key,
            other_keys=tuple(other_keys),
            control=control.get("name") or "",
            subject=subject_name or "",
        )

    def result(self, classes: Sequence[str]) -> list[dict[str, Any]]:
        """These classes as the result of an annotation or a prediction."""
        if not classes:
            return []
        return [
            {
                "from_name": self.control,
                "to_name": self.subject,
                "type": "choices",
                "value": {"choices": list(classes)},
            }
        ]

    def chosen(self, result: Sequence[dict[str, Any]]) -> tuple[str, ...]:
        """The classes in the result of an annotation, sorted. The config may not know all of them
        any more.
        """
        names: set[str] = set()
        for entry in result:
            # Further questions may have been asked and taken away again.
            if entry.get("from_name") != self.control:
                continue
            value = entry.get("value", {})
            names.update(value.get("choices", []))
        return tuple(sorted(names))


def _parse(xml: str) -> list[ElementTree.Element]:
    """All tags of a label config; InputError where it is no XML or has tags of other kinds."""
    # Entities could be nested until they fill the memory.
    if "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        raise InputError("the label config declares entities: write it without a DOCTYPE")
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise InputError(f"the label config is no XML ({error}): mend it in Label Studio") from None
    tags = list(root.iter())
    tag_names = {tag.tag for tag in tags}
    supported = {*LAYOUT_TAGS, *SUBJECT_TAGS, "Choices", "Choice"}
    unsupported = sorted(tag_names - supported)
    if unsupported:
        names = ", ".join(f"<{name}>" for name in unsupported)
        raise InputError(f"the label config has {names}: {SUPPORTED}")
    return tags


def _class_names(control: ElementTree.Element) -> tuple[str, ...]:
    names = []
    for choice in control.iter("Choice"):
        has_inner_choices = len(choice) > 0
        if has_inner_choices:
            raise InputError(
                "a <Choice> lies inside another: only a flat list of choices can be worked with"
            )
        # The alias, where there is one, is what annotations hold.
        name = choice.get("alias") or choice.get("value")
        names.append(name or "")
    return tuple(names)


def _find_control(tags: Sequence[ElementTree.Element]) -> ElementTree.Element:
    controls = []
    for tag in tags:
        if tag.tag == "Choices":
            controls.append(tag)
    if len(controls) != 1:
        raise InputError(f"the label config has {len(controls)} <Choices>: {SUPPORTED}")
    return controls[0]


def _check_attributes(control: ElementTree.Element, subject: ElementTree.Element) -> None:
    """Raises InputError for choices or subjects that come from a task's data or concern parts of
    it.
    """
    unsupported = (
        (control, "value"),
        (control, "perRegion"),
        (control, "perItem"),
        (subject, "valueList"),
    )
    for tag, attribute in unsupported:
        value = tag.get(attribute)
        if value not in (None, "false"):
            raise InputError(
                f"<{tag.tag} {attribute}={value!r}> can't be worked with: "
                f"{SUPPORTED}, choices listed in it"
            )
    if subject.get("valueType") == "url":
        raise InputError(
            "<Text valueType=\"url\"> can't be worked with: let the task's data hold the text "
            "itself"
        )
    choice = control.get("choice", "single")
    if choice not in KIND_BY_CHOICE:
        raise InputError(
            f"<Choices choice={choice!r}>: it must be one of {', '.join(KIND_BY_CHOICE)}"
        )


def _data_key(tag: ElementTree.Element) -> str:
    value = tag.get("value") or ""
    if not value.startswith("$"):
        raise InputError(
            f"<{tag.tag} value={value!r}>: it must name a field of the task's data, such as $image"
        )
    return value[1:]
