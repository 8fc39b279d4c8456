"""A Griffe extension: docstrings as this project writes them, turned into Markdown for the API
page. Examples become code blocks, lists of arguments become Markdown lists.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

#: "name  what it means", an aligned list of arguments; further lines are indented
LISTED = re.compile(r"([a-z_]\w*(?:, \w+)*) {2,}(\S.*)")


class HouseDocstrings(griffe.Extension):
    """Rewrites every docstring when it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """A docstring in plain text -> the same in Markdown."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(paragraph: str) -> str:
    if paragraph.lstrip().startswith(">>>"):
        return f"```pycon\n{paragraph}\n```"
    lines = paragraph.splitlines()
    if not LISTED.fullmatch(lines[0]):
        # v (K,) -> ... would be read as a quotation or as HTML
        return re.sub(r"^(-> )", r"\\\1", paragraph.replace("<", "&lt;"), flags=re.MULTILINE)
    items: list[str] = []
    for line in lines:
        listed = LISTED.fullmatch(line)
        if listed:
            names = ", ".join(f"`{name}`" for name in listed[1].split(", "))
            items.append(f"- {names}: {listed[2]}")
        else:
            items[-1] += f" {line.strip()}"
    return "\n".join(items)
