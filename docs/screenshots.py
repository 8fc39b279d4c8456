"""The pictures of the labelling page in docs/images, made anew.

    python docs/screenshots.py [NAME...]

Needs chromium and pip install 'tailor-active-learning[web,browser]'; with Debian's fonts-inter they
look as they do here.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / folder) for folder in ("web", "support")]

import sites  # noqa: E402
from browsing import Tab, browsing, expect, running, wait_for  # noqa: E402
from fruit import KINDS, orchard, truth  # noqa: E402
from PIL import Image  # noqa: E402

from tailor.annotation import Coordinator  # noqa: E402

SPECIES = ("oak", "elm", "fir", "yew", "ash", "birch", "maple", "alder", "poplar", "willow")


def main(wanted: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        pool = orchard(Path(folder, "orchard"), 240, 640, 480)
        project = sites.begin(
            Path(folder, "fruit-labels"),
            pool,
            batch=20,
            holdout=0.2,
            strategies=["galaxy", "confidence", "most-likely-positive"],
        )
        options = {"overlap": 2, "overlap_share": 0.12}
        with running(project, name="anna", coordinator_options=options) as (url, coordinator):
            label(coordinator, 130)
            for name, (path, change) in PAGES.items():
                if not wanted or name in wanted:
                    take(browser, url, name, path, change)
        many = [f"{tree} {number:02d}" for tree in SPECIES for number in range(100)]
        project = sites.begin(Path(folder, "trees-labels"), pool, many)
        with running(project, name="anna") as (url, _):
            if not wanted or "search" in wanted:
                take(browser, url, "search", "/", type_letters)


def label(coordinator: Coordinator, count: int) -> None:
    """Three people, one of whom sees things differently now and then."""
    done = 0
    while done < count:
        who = ("anna", "bert", "chloe")[done % 3]
        wait_for(lambda who=who: coordinator.next(who, 1).items)
        item = coordinator.next(who, 1).items[0]
        odd = who == "bert" and done % 8 == 0
        coordinator.answer(who, item.id, [KINDS[(KINDS.index(truth(item.id)) + odd) % 4]])
        done += 1
        if done % 20 == 15:  # a person would be slow enough for the model to follow
            wait_for(lambda: coordinator.overview()["training"]["state"] == "idle")
    for who in ("bert", "chloe"):
        coordinator.release(who)


def take(browser: Any, url: str, name: str, path: str, change: Callable[[Tab], None]) -> None:
    tab = Tab(browser, url).open(path)
    change(tab)
    tab.page.wait_for_load_state("networkidle")
    out = HERE / "images" / f"{name}.webp"
    Image.open(io.BytesIO(tab.page.screenshot())).convert("RGB").save(out, quality=90, method=6)
    print(out)
    tab.close()


def as_it_is(tab: Tab) -> None:
    """The page with all its numbers."""
    if tab.page.viewport_size["width"] > 1000:
        tab.page.set_viewport_size({"width": 1440, "height": 1060})
    expect(tab.page.locator("#mat:not([aria-busy=true]) img")).to_be_visible()
    expect(tab.page.locator("#why p").first).not_to_have_text("…")


def dark(tab: Tab) -> None:
    as_it_is(tab)
    tab.page.emulate_media(color_scheme="dark")


def upright(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 820, "height": 1180})
    as_it_is(tab)


def whole(tab: Tab) -> None:
    """All of a page that is longer than the window."""
    tab.open("/model")
    expect(tab.page.locator(".matrix")).to_be_visible()
    height = tab.page.evaluate("() => document.documentElement.scrollHeight")
    tab.page.set_viewport_size({"width": 1280, "height": height})


def type_letters(tab: Tab) -> None:
    assert tab.name
    tab.page.keyboard.type("wi 1")


def nothing(tab: Tab) -> None:
    return


PAGES: dict[str, tuple[str, Callable[[Tab], None]]] = {
    "label": ("/", as_it_is),
    "label-dark": ("/", dark),
    "tablet": ("/", upright),
    "model": ("/", whole),
    "review": ("/review", nothing),
    "classes": ("/classes", nothing),
    "team": ("/team", nothing),
}

if __name__ == "__main__":
    main(sys.argv[1:])
