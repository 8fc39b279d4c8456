"""What the docs show runs as it stands and prints what they say: Python, shell and TOML blocks of
pages, examples in docstrings.
"""

from __future__ import annotations

import doctest
import importlib
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import doc_blocks
import parts
import pytest
import toy_data
from doc_blocks import PageRunner, blocks_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PAGES_THAT_RUN = [
    page
    for page in PAGES
    if any(not block.reason and block.language in doc_blocks.RUN for block in blocks_of(page))
]
MODULES_WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("tailor", "tailor_experiments")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>>" in path.read_text()
]


def pictures(folder: Path) -> dict[str, Any]:
    """A folder `photos` of small pictures, and someone who knows what they show."""
    toy_data.write_photos(folder / "photos")
    return {"my_answer": toy_data.truth}


def pictures_and_run(folder: Path) -> dict[str, Any]:
    """The same, and a run that is ready to be labelled."""
    from tailor.run import config

    toy_data.write_photos(folder / "photos")
    settings = {
        "task": {"kind": "multi-class", "classes": list(toy_data.CLASSES)},
        "pool": {"path": str(folder / "photos")},
        "model": {"name": "probe", "backbone": "pixels(size=8)", "device": "cpu"},
    }
    config.write(folder / "run", settings)
    return {"folder": folder / "run"}


def cifar(folder: Path) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "tests" / "experiments" / "datasets"))
    import official_files

    official_files.write_cifar10(folder / "path" / "to" / "cifar")
    return {}


#: what the reader of a page has that its blocks do not make
PREPARED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "README.md": pictures,
    "docs/how-to/labelling.md": pictures,
    "docs/how-to/session.md": pictures,
    "docs/how-to/team.md": pictures_and_run,
    "docs/how-to/datasets.md": cifar,
    "docs/tutorials/label-a-folder.md": pictures,
    "docs/tutorials/a-team.md": pictures,
}


def label_as_people_would(project: Any, *, say: Any, overlap: int, **options: Any) -> None:
    """Stands in for the server of `tailor label`, which would wait for browsers: two people answer
    40 examples through the coordinator that the page uses.
    """
    from tailor.annotation import Coordinator

    with Coordinator(project, overlap=overlap, overlap_share=options["overlap_share"]) as live:
        for turn in range(40):
            person = ("anna", "bert")[turn % 2]
            for item in wait_for_examples(live, person):
                live.answer(person, item.id, [toy_data.truth(item.id)])


def wait_for_examples(live: Any, person: str) -> Any:
    """The next example, once the round is prepared; none where the run is through."""
    deadline = time.monotonic() + 120
    while True:
        handed = live.next(person, 1)
        if handed.items or handed.state == "stopped":
            return handed.items
        assert time.monotonic() < deadline, handed
        time.sleep(0.01)


@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    import torch

    blocks = [block for block in blocks_of(page) if not block.reason]
    assert blocks, "a page is listed here because it has blocks that run"
    if any("tailor label" in block.text or "users add" in block.text for block in blocks):
        parts.need("labelling page")
        monkeypatch.setattr("tailor.web.serve.serve", label_as_people_would)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # figures are those of one thread
    monkeypatch.chdir(tmp_path)
    prepare = PREPARED.get(str(page.relative_to(ROOT)))
    runner = PageRunner(prepare(tmp_path) if prepare else {})
    try:
        for block in blocks:
            runner.run(block)
    finally:
        torch.set_num_threads(threads)


def test_every_block_runs_or_says_why_not():
    """A fence without a language, or in one that nobody runs or knows, would go unnoticed."""
    unknown = [str(b) for b in BLOCKS if b.language not in (*doc_blocks.RUN, *doc_blocks.SHOWN)]
    assert not unknown, f"fences whose language is not known: {', '.join(unknown)}"
    run = [block for block in BLOCKS if block.language in doc_blocks.RUN and not block.reason]
    marked = [block for block in BLOCKS if block.reason]
    assert not [str(b) for b in marked if b.language in doc_blocks.SHOWN]
    shown = [block for block in BLOCKS if block.language in doc_blocks.SHOWN]
    assert len(run) + len(marked) + len(shown) == len(BLOCKS)
    assert len(run) > len(marked), "most blocks should run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_code_hides_in_an_indented_block(page):
    """Indented text is code to Markdown too, and would not be run."""
    prose = doc_blocks.FENCE.sub("", page.read_text())
    hidden = re.findall(r"(?:^|\n\n)( {4}(?:tailor|python|pip|make|import|from|\$) .*)", prose)
    assert not hidden, f"{page.name} has code without a fence: {hidden}"


def test_the_readme_promises_counts():
    """So that the comparison above has something to compare."""
    (block,) = [b for b in blocks_of(ROOT / "README.md") if b.language == "python"]
    (promised,) = doc_blocks.PRINTED.findall(block.text)
    assert sum(float(count) for count in re.findall(r"[\d.]+", promised)) == 130


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testmod(module, optionflags=flags)
    assert tried > 0, f"{name} has examples that are never run"
    assert failed == 0
