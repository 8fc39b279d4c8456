"""The reference pages of families, selectors, rewards, models and pools, made from their classes.

A page holds the class's docstring, its options with defaults from the signature, and for a family a
figure of what it picks on a toy pool. Whatever a registry lists has a page: a new class needs no
edit here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tailor import bandits, models, pools, strategies
from tailor.bandits import rewards
from tailor.common.class_docstring import COST, FORMULA, WHEN, ClassDocstring, parse_docstring
from tailor.registry import Registry


@dataclass(frozen=True)
class ReferenceSection:
    """One registry, and how its pages are laid out."""

    folder: str  # below docs/reference/
    title: str
    singular: str
    registry: Registry[Any]
    intro: str
    parts: tuple[str, ...]  # labelled paragraphs that every class docstring must have


REFERENCE_SECTIONS = (
    ReferenceSection(
        "families",
        "Families of arms",
        "family",
        strategies.registry,
        "A family is one active-learning algorithm, or one for each class. The figures show what "
        "it picks next on a toy pool: dots are unlabelled, squares are labelled, numbered rings "
        "are the picks. A coloured ring belongs to the arm of that class.",
        (FORMULA, COST, WHEN),
    ),
    ReferenceSection(
        "selectors",
        "Selectors",
        "selector",
        bandits.registry,
        "A selector decides which arm fills each slot of a batch, and learns from the labels that "
        "the arms' picks turn out to have.",
        (FORMULA, COST, WHEN),
    ),
    ReferenceSection(
        "rewards",
        "Rewards",
        "reward",
        rewards.registry,
        "A reward is a vector v over the classes: an example with label y is worth ⟨v, y⟩.",
        (FORMULA, COST, WHEN),
    ),
    ReferenceSection(
        "models",
        "Models",
        "model",
        models.registry,
        "A model is trained on the labels so far and predicts on the pool.",
        (FORMULA, COST, WHEN),
    ),
    ReferenceSection(
        "pools",
        "Pools",
        "pool",
        pools.registry,
        "A pool holds the examples. Nothing is read into memory as a whole.",
        (COST, WHEN),
    ),
)


def entries() -> Iterator[tuple[ReferenceSection, str]]:
    """Every (section, name) that has a page. Plugins that happen to be installed have none."""
    for section in REFERENCE_SECTIONS:
        for name in section.registry.builtin:
            yield section, name


def path(section: ReferenceSection, name: str) -> str:
    """Where the page lies, below docs/."""
    return f"reference/{section.folder}/{name}.md"


def figure_path(name: str) -> str:
    """Where the figure of a family lies, below docs/."""
    return f"reference/families/{name}.svg"


def arguments(section: ReferenceSection, name: str) -> dict[str, inspect.Parameter]:
    """The constructor's arguments that a user gives."""
    made_by = section.registry.find(name)
    if made_by.__init__ is object.__init__:
        return {}
    hidden = {"contest", "task", "pool"}  # handed in by TAILOR itself
    parameters = inspect.signature(made_by).parameters
    return {key: value for key, value in parameters.items() if key not in hidden}


def docstring(section: ReferenceSection, name: str) -> ClassDocstring:
    return parse_docstring(section.registry.find(name).__doc__ or "", set(arguments(section, name)))


def missing(section: ReferenceSection, name: str) -> list[str]:
    """What the class docstring still has to say."""
    parsed = docstring(section, name)
    said = " ".join([parsed.summary, *parsed.prose, *parsed.options.values()])
    lacking = [part for part in section.parts if not parsed.parts.get(part)]
    for option in arguments(section, name):
        if not parsed.options.get(option) and f"`{option}`" not in said:
            lacking.append(f"option {option}")
    return lacking


def page(section: ReferenceSection, name: str) -> str:
    """The page in Markdown."""
    made_by = section.registry.find(name)
    parsed = docstring(section, name)
    blocks = [f"# {name}", f"**{_escaped(parsed.summary)}**"]
    if section.folder == "families":
        blocks.append(_family_facts(made_by))
        blocks.append(f"![What {name} picks on the toy pool](../../{figure_path(name)})")
    blocks += [_escaped(paragraph) for paragraph in parsed.prose]
    for part, text in parsed.parts.items():
        shown = _escaped(_sentence(text))
        if part == FORMULA:
            shown = f'<div class="formula" markdown>\n{_indexed(shown)}\n</div>'
        blocks += [f"## {_heading(part)}", shown]
    blocks += ["## Options", _options_table(section, name, parsed)]
    if parsed.example:
        blocks += ["## Example", f"```pycon\n{parsed.example}\n```"]
    blocks.append(f"Class `{made_by.__module__}.{made_by.__qualname__}`.")
    return "\n\n".join(blocks) + "\n"


def overview(section: ReferenceSection) -> str:
    """The page that lists a section."""
    blocks = [f"# {section.title}", section.intro]
    rows = [f"| {section.singular} | what it does |", "|---|---|"]
    for name in section.registry.builtin:
        summary = _escaped(docstring(section, name).summary).replace("|", "\\|")
        rows.append(f"| [`{name}`]({name}.md) | {summary} |")
    blocks.append("\n".join(rows))
    if section.folder == "families":
        figures = [f"[![{name}]({name}.svg)]({name}.md)" for name in section.registry.builtin]
        blocks.append('<div class="gallery" markdown>\n' + "\n".join(figures) + "\n</div>")
    return "\n\n".join(blocks) + "\n"


def _heading(part: str) -> str:
    return "When to use it" if part == WHEN else part


def _sentence(text: str) -> str:
    """With a capital letter, unless it begins with a symbol of a formula."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]{2,}\b(?![(_])", text) else text


def _indexed(formula: str) -> str:
    """p\\_k and 2^k of a formula in Markdown, as HTML with k below and above."""
    lowered = re.sub(r"(\w)\\_(\w+)", r"\1<sub>\2</sub>", formula)
    return re.sub(r"\^([\w⅓⅔]+)", r"<sup>\1</sup>", lowered)


def _family_facts(family: type[strategies.Strategy]) -> str:
    count = "one arm for each class" if family.per_class else "one arm"
    tasks = " and ".join(sorted(family.tasks))
    needs = ", ".join(sorted(need.value for need in family.needs)) or "nothing of the model"
    assert family.idea is not None  # the contract of families sees to it
    return f"Idea: {family.idea.value} · for {tasks} tasks · {count} · needs: {needs}."


def _options_table(section: ReferenceSection, name: str, parsed: ClassDocstring) -> str:
    options = arguments(section, name)
    if not options:
        return "None."
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for option, parameter in options.items():
        required = parameter.default is inspect.Parameter.empty
        default = "needed" if required else f"`{_plain(parameter.default)}`"
        meaning = parsed.options.get(option, "see above").replace("|", "\\|")
        rows.append(f"| `{option}` | {default} | {_escaped(meaning)} |")
    return "\n".join(rows)


def _plain(default: Any) -> str:
    """As it is written in tailor.toml: a word without quotation marks."""
    return default if isinstance(default, str) else repr(default)


def _escaped(text: str) -> str:
    """Keep < and * of a formula from being read as HTML or emphasis, outside of code."""
    pieces = re.split(r"(`[^`]*`)", text)
    for position in range(0, len(pieces), 2):
        marked = re.sub(r"([*_\[])", r"\\\1", pieces[position])
        pieces[position] = marked.replace("<", "&lt;")
    return "".join(pieces)
