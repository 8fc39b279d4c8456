"""The labelling page in a real browser: how soon it opens, and how long from a key to the next
picture on the screen.

    python benchmarks/page.py [--pictures 100000] [--keys 300] [--backbone NAME]

Needs chromium and pip install 'tailor-active-learning[web,browser]'. Prints one JSON object a row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

#: in the page: from the time stamp of the key to the frame after the one that shows another,
#: decoded picture
WATCH = """() => {
  window.times = [];
  let pressed = null;
  document.addEventListener("keydown", (event) => { pressed ??= event.timeStamp; }, true);
  const seen = async () => {
    const image = document.querySelector("#mat img");
    if (!image || pressed === null) return;
    const began = pressed;
    pressed = null;
    await image.decode().catch(() => {});
    requestAnimationFrame(() => { const channel = new MessageChannel();
      channel.port1.onmessage = () => window.times.push(performance.now() - began);
      channel.port2.postMessage(null); });
  };
  new MutationObserver(seen).observe(document.getElementById("mat"), { childList: true });
}"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=100_000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument(
        "--pause",
        type=float,
        default=0.25,
        help="seconds between two keys",
    )
    parser.add_argument("--backbone", default="pixels(size=8)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder, "pictures")
        make_pictures(pool, given.pictures, given.side)
        for run in ("first", "second"):
            measure(pool, run, given)


def make_pictures(folder: Path, count: int, side: int) -> None:
    """Coloured noise under 1,000 to a folder."""
    rng = np.random.default_rng(0)
    for number in range(count):
        if number % 1000 == 0:
            (folder / f"{number // 1000:03d}").mkdir(parents=True)
        coarse = rng.integers(0, 256, (4, 4, 3), np.uint8)
        picture = Image.fromarray(coarse).resize((side, side))
        picture.save(folder / f"{number // 1000:03d}" / f"{number:06d}.jpg", quality=80)


def measure(pool: Path, run: str, given: argparse.Namespace) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "label",
        str(pool),
        "--classes",
        "a,b,c,d",
        "--no-open",
        "--port",
        str(port),
        "--batch",
        "50",
    ]
    started = time.perf_counter()
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tailor",
            *words,
            "--backbone",
            given.backbone,
        ]
    )
    try:
        with sync_playwright() as playwright:
            sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=sandbox
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            show(page, f"http://127.0.0.1:{port}/", server)
            row: dict[str, Any] = {
                "run": run,
                "pictures": given.pictures,
                "backbone": given.backbone,
                "seconds_to_first_picture": round(time.perf_counter() - started, 2),
            }
            print(json.dumps(row | press(page, given.keys, given.pause)), flush=True)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def show(page: Page, url: str, server: subprocess.Popen[bytes]) -> None:
    """Until the first picture is on the screen."""
    while server.poll() is None:
        try:
            page.goto(url)
            break
        except Exception:  # it does not listen yet
            time.sleep(0.05)
    expect(page.locator("#mat:not([aria-busy=true]) img")).to_be_visible(timeout=300_000)


def press(page: Page, keys: int, pause: float) -> dict[str, Any]:
    page.evaluate(WATCH)
    for number in range(keys):
        expect(page.locator("#mat:not([aria-busy=true]) img")).to_be_visible(timeout=300_000)
        page.keyboard.press("1234"[number % 4])
        time.sleep(pause)
    expect(page.locator("#saved")).to_have_text("All saved", timeout=60_000)
    times = np.array(page.evaluate("() => window.times"))
    return {
        "keys": len(times),
        "median_ms": round(float(np.median(times)), 1),
        "p99_ms": round(float(np.quantile(times, 0.99)), 1),
        "longest_ms": round(float(times.max()), 1),
        "numbers": page.locator("[data-card=progress] .facts").last.inner_text().replace("\n", " "),
    }


if __name__ == "__main__":
    main()
