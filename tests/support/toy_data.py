"""Small embedded data that the docs' examples run on: pictures, texts and embeddings of three
kinds, the last of which is rare.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog", "fox")
COLOURS = {"cat": (200, 120, 90), "dog": (90, 150, 190), "fox": (220, 170, 60)}
COUNTS = {"cat": 60, "dog": 42, "fox": 18}


def write_photos(folder: Path) -> None:
    """120 pictures of 16 x 16 pixels in folder/CLASS/NUMBER.png: a colour for each class, and
    noise.
    """
    rng = np.random.default_rng(0)
    for name, count in COUNTS.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            noise = rng.normal(0, 60, (16, 16, 3))
            pixels = np.clip(noise + COLOURS[name], 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number:02}.png")


def write_embeddings(folder: Path) -> None:
    """vectors.npy (120, 8) float32 and classes.npy (120,) texts."""
    rng = np.random.default_rng(1)
    classes = np.repeat(list(COUNTS), list(COUNTS.values()))
    centres = {name: rng.normal(0, 1, 8) for name in COUNTS}
    vectors = np.stack([centres[name] + rng.normal(0, 1, 8) for name in classes])
    order = rng.permutation(len(classes))
    np.save(folder / "vectors.npy", vectors[order].astype(np.float32))
    np.save(folder / "classes.npy", classes[order])


def write_texts(folder: Path) -> None:
    """reviews.csv with columns id, text and label."""
    rng = np.random.default_rng(2)
    words = {
        "cat": ("whiskers", "purr", "sofa"),
        "dog": ("bark", "leash", "park"),
        "fox": ("den", "dusk", "tail"),
    }
    with (folder / "reviews.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for name, count in COUNTS.items():
            for number in range(count):
                text = " ".join(rng.choice([*words[name], "the", "a", "small"], 6))
                writer.writerow([f"{name}-{number}", text, name])


def truth(example: str) -> str:
    """The class of a picture, which is the folder that it lies in."""
    return Path(example).parent.name
