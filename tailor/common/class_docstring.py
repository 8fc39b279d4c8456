"""What a class docstring says: its idea, formula, cost, options and example.

The reference pages and `tailor arms NAME` are made from it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

FORMULA = "Formula"
COST = "Cost"
WHEN = "When to use"
#: how a line of an example begins; not written out, since this file has no example of its own
PROMPT = 3 * ">"


@dataclass
class ClassDocstring:
    """A class docstring, taken apart."""

    summary: str
    prose: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    example: str = ""


LABELLED = re.compile(rf"({FORMULA}|{COST}|{WHEN}):\s+(.*)", re.DOTALL)
#: "name, other  what they mean", as the docstrings list their options
OPTION = re.compile(r"(\w+(?:, \w+)*)(?::\s+| {2,}|$)(.*)")
#: the same with a single space, for a name as long as the column
TIGHT_OPTION = re.compile(r"(\w+) (.*)")


def parse_docstring(docstring: str, names: set[str]) -> ClassDocstring:
    """Take a class docstring apart. `names` are the arguments of its constructor."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    parsed = ClassDocstring(summary=_one_line(paragraphs[0]))
    for paragraph in paragraphs[1:]:
        labelled = LABELLED.fullmatch(paragraph)
        if PROMPT in paragraph:
            if parsed.example:
                parsed.example += "\n"
            parsed.example += paragraph
        elif labelled:
            parsed.parts[labelled[1]] = _one_line(labelled[2])
        elif options := _options(paragraph, names):
            parsed.options.update(options)
        else:
            parsed.prose.append(_one_line(paragraph))
    return parsed


def _one_line(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _options(paragraph: str, names: set[str]) -> dict[str, str]:
    """The options that a paragraph lists, one an unindented line; {} where it is no such list."""
    meanings: dict[str, str] = {}
    current: list[str] = []
    may_be_indented = paragraph.startswith("Args:")
    for line in paragraph.splitlines():
        stripped = line.strip()
        if stripped in ("Args:", "Options:"):
            continue
        if may_be_indented:
            start = OPTION.fullmatch(stripped)
        else:
            start = OPTION.fullmatch(line)
        if start is None and current:
            start = TIGHT_OPTION.fullmatch(line)
        listed: list[str] = []
        if start:
            listed = start[1].split(", ")
        if start and names.intersection(listed):
            current = listed
            meaning = start[2].strip()
            meanings |= dict.fromkeys(listed, meaning)
        elif current:
            begun = meanings[current[0]]
            longer = f"{begun} {stripped}".strip()
            meanings |= dict.fromkeys(current, longer)
        else:
            return {}
    return meanings
