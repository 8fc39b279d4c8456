"""Pictures of fruit, drawn here: four kinds, very unequal in number, each picture different."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

KINDS = ("apple", "lemon", "pear", "plum")
SHARES = (0.62, 0.22, 0.11, 0.05)
COLOURS = {
    "apple": (196, 54, 48),
    "lemon": (240, 205, 70),
    "pear": (150, 178, 72),
    "plum": (94, 58, 128),
}
CLOTHS = ((232, 224, 210), (206, 216, 222), (224, 214, 228), (196, 204, 192), (238, 236, 232))


def _outline(kind: str, angle: np.ndarray) -> np.ndarray:
    """The radius at each angle, about 1."""
    if kind == "apple":
        return 1 - 0.14 * np.exp(-((angle + math.pi / 2) ** 2) / 0.06) + 0.02 * np.cos(2 * angle)
    if kind == "lemon":
        return 0.82 + 0.24 * np.abs(np.cos(angle)) ** 9 + 0.06 * np.abs(np.cos(angle))
    if kind == "pear":
        return 0.86 + 0.12 * np.sin(angle) + 0.28 * np.exp(-((angle + math.pi / 2) ** 2) / 0.16)
    return 0.84 + 0.05 * np.cos(2 * angle)


def draw(kind: str, rng: np.random.Generator, width: int = 480, height: int = 360) -> Image.Image:
    scale = 2
    size = (width * scale, height * scale)
    cloth = np.array(CLOTHS[rng.integers(len(CLOTHS))]) + rng.normal(0, 5, 3)
    ramp = np.linspace(1.05, 0.88, size[1])[:, None, None] * cloth
    image = Image.fromarray(np.clip(np.repeat(ramp, size[0], 1), 0, 255).astype(np.uint8))
    radius = size[1] * rng.uniform(0.26, 0.36)
    centre = np.array(size) * rng.uniform((0.36, 0.46), (0.64, 0.58))
    angle = np.linspace(-math.pi, math.pi, 361)
    turn = rng.normal(0, 0.22)
    r = radius * _outline(kind, angle)
    points = np.stack([r * np.cos(angle + turn), r * np.sin(angle + turn)], 1) + centre
    shadow = Image.new("L", size, 0)
    around = radius * np.array([[-1, 0.72], [1.15, 1.12]])
    ImageDraw.Draw(shadow).ellipse((centre + around).ravel().tolist(), fill=110)
    image.paste((60, 55, 60), mask=shadow.filter(ImageFilter.GaussianBlur(radius * 0.09)))
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).polygon([tuple(p) for p in points], fill=255)
    colour = np.clip(np.array(COLOURS[kind]) + rng.normal(0, 14, 3), 0, 255)
    y, x = np.mgrid[: size[1], : size[0]]
    light = np.hypot(x - centre[0] + radius * 0.38, y - centre[1] + radius * 0.42) / (radius * 1.7)
    shade = np.clip(1.22 - 0.62 * light**1.4, 0.35, 1.3)[..., None]
    gloss = np.exp(-((light / 0.16) ** 2))[..., None] * 90
    body = np.clip(shade * colour + gloss + rng.normal(0, 3, (*light.shape, 1)), 0, 255).astype(
        np.uint8
    )
    image.paste(Image.fromarray(body), mask=mask.filter(ImageFilter.GaussianBlur(1.2)))
    if kind in ("apple", "pear"):
        stalk = points[90] + radius * np.array([[0, 0.05], [0.1, -0.3]])
        ImageDraw.Draw(image).line(stalk.ravel().tolist(), (92, 66, 42), int(radius * 0.07))
    return image.resize((width, height), Image.Resampling.LANCZOS)


def kind_of(number: int, seed: int = 0) -> str:
    """What picture `number` shows: known to the tests, not to the page."""
    return KINDS[int(np.random.default_rng((seed, number)).choice(len(KINDS), p=SHARES))]


def truth(one: str) -> str:
    """The class of a picture by its id."""
    return kind_of(int(Path(one).stem.split("-")[1]))


def orchard(folder: Path, count: int, width: int = 96, height: int = 72) -> Path:
    """A folder of `count` pictures whose names say nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        picture = draw(kind_of(number), np.random.default_rng((1, number)), width, height)
        picture.save(folder / f"img-{number:05d}.jpg", quality=88)
    return folder
