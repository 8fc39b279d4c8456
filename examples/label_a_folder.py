"""Label a folder of pictures from Python, in a run that survives a crash.

The pictures are made here, and a function stands in for you. Everything told is on disk when
`tell` returns: stop the script at any moment, run it again, and it goes on where it stood.

    python examples/label_a_folder.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from tailor import open_run

COUNTS = {"cat": 60, "dog": 40, "fox": 20}
COLOURS = {"cat": (200, 120, 90), "dog": (90, 150, 190), "fox": (220, 170, 60)}


def main(folder: Path) -> None:
    photos = folder / "photos"
    if not photos.exists():
        make_photos(photos)
    with open_run(photos, classes=list(COUNTS), backbone="pixels", batch=15, budget=60) as run:
        while asked := run.ask():
            run.tell({pick.id: look_at(pick.id) for pick in asked}, by="me")
            print(f"{run.status()['answered']} answers; arms: {sorted({p.arm for p in asked})}")
        print(f"stopped: {asked.stopped}")
        rows = run.export(folder / "labels.csv")
        print(f"{rows} rows in labels.csv")
        estimate = run.train(folder / "model", overwrite=True)
        if estimate is not None:
            print(f"accuracy on the hold-out {estimate.accuracy:.2f}")


def look_at(picture: str) -> str:
    """Stands in for a person: the pictures lie in folders named by their class."""
    return Path(picture).parent.name


def make_photos(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name, count in COUNTS.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = np.clip(rng.normal(COLOURS[name], 60, (16, 16, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{number:02}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
