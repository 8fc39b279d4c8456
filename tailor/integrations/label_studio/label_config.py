"""The label config of a Label Studio project: which classes there are, and how answers are written
in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from tailor.errors import InputError

#: tags that only arrange or explain
PLAIN = frozenset({"View", "Style", "Header", "Collapse", "Panel", "Markdown", "Filter"})
OBJECTS = {"Image": "image", "Text": "text"}
KINDS = {"single": "multi-class", "single-radio": "multi-class", "multiple": "multi-label"}
CAN = "TAILOR works with one <Choices> on an <Image> or a <Text>"


@dataclass(frozen=True)
class LabelConfig:
    """One question, with its choices, about a picture or a text."""

    kind: str  # "multi-class" or "multi-label"
    classes: tuple[str, ...]
    shows: str  # "image" or "text"
    key: str  # where a task's data hold it
    others: tuple[str, ...]  # further keys that a task's data must have
    control: str  # the name of the <Choices>
    subject: str  # the name of the <Image> or <Text>

    @classmethod
    def read(cls, text: str) -> LabelConfig:
        """From its XML; an InputError names what can't be worked with."""
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise InputError("the label config declares entities: write it without a DOCTYPE")
        try:
            tags = list(ElementTree.fromstring(text).iter())
        except ElementTree.ParseError as error:
            raise InputError(
                f"the label config is no XML ({error}): mend it in Label Studio"
            ) from None
        odd = sorted({t.tag for t in tags} - PLAIN - set(OBJECTS) - {"Choices", "Choice"})
        if odd:
            raise InputError(f"the label config has {_listed(odd)}: {CAN}")
        controls = [t for t in tags if t.tag == "Choices"]
        if len(controls) != 1:
            raise InputError(f"the label config has {len(controls)} <Choices>: {CAN}")
        control = controls[0]
        subjects = {t.get("name"): t for t in tags if t.tag in OBJECTS}
        if control.get("toName") not in subjects:
            raise InputError(
                f"<Choices> points to {control.get('toName')!r}, which is no <Image> or <Text>: "
                f"{CAN}"
            )
        subject = subjects.pop(control.get("toName"))
        for tag, key in (
            (control, "value"),
            (control, "perRegion"),
            (control, "perItem"),
            (subject, "valueList"),
        ):
            if tag.get(key) not in (None, "false"):
                raise InputError(
                    f"<{tag.tag} {key}={tag.get(key)!r}> can't be worked with: {CAN}, choices "
                    "listed in it"
                )
        if subject.get("valueType") == "url":
            raise InputError(
                "<Text valueType=\"url\"> can't be worked with: let the task's data hold the "
                "text itself"
            )
        if control.get("choice", "single") not in KINDS:
            raise InputError(
                f"<Choices choice={control.get('choice')!r}>: it must be one of {', '.join(KINDS)}"
            )
        choices = list(control.iter("Choice"))
        if any(list(c) for c in choices):
            raise InputError(
                "a <Choice> lies inside another: only a flat list of choices can be worked with"
            )
        return cls(
            KINDS[control.get("choice", "single")],
            tuple(c.get("alias") or c.get("value") or "" for c in choices),
            OBJECTS[subject.tag],
            _key(subject),
            tuple(_key(t) for t in subjects.values()),
            control.get("name") or "",
            control.get("toName") or "",
        )

    def written(self, classes: Sequence[str]) -> list[dict[str, Any]]:
        """These classes as the result of an annotation or a prediction."""
        if not classes:
            return []
        value = {"choices": list(classes)}
        return [
            {"from_name": self.control, "to_name": self.subject, "type": "choices", "value": value}
        ]

    def chosen(self, result: Sequence[dict[str, Any]]) -> tuple[str, ...]:
        """The classes in the result of an annotation, sorted; the config may not know all of them
        any more.
        """
        found = [
            one.get("value", {}).get("choices", [])
            for one in result
            if one.get("from_name") == self.control
        ]
        return tuple(sorted({name for names in found for name in names}))


def _key(tag: ElementTree.Element) -> str:
    value = tag.get("value") or ""
    if not value.startswith("$"):
        raise InputError(
            f"<{tag.tag} value={value!r}>: it must name a field of the task's data, such as $image"
        )
    return value[1:]


def _listed(tags: Sequence[str]) -> str:
    return ", ".join(f"<{tag}>" for tag in tags)
