"""Small pools with known answers, and runs over them that are tied to Label Studio."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
from PIL import Image
from studio_server import TOKEN, AnnotatedProject

from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.connect import connected

WORDS = {
    "sport": ["goal", "match", "team", "league", "coach"],
    "politics": ["vote", "minister", "party", "law", "election"],
    "science": ["atom", "planet", "gene", "theory", "laser"],
}
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}


def label_config(shows: str, choice: str, classes) -> str:
    subject = {
        "text": '<Text name="subject" value="$text"/>',
        "image": '<Image name="subject" value="$image"/>',
    }[shows]
    choices = "".join(f'<Choice value="{name}"/>' for name in classes)
    return (
        f'<View>{subject}<Choices name="answer" toName="subject" '
        f'choice="{choice}">{choices}</Choices></View>'
    )


def topic(text: str) -> str:
    return next(name for name, words in WORDS.items() if any(word in text for word in words))


def texts(path: Path, size: int = 60) -> Path:
    """Sentences on three topics, with an id of their own."""
    rng = np.random.default_rng(3)
    names = list(WORDS)
    with path.open("w") as file:
        for number in range(size):
            words = rng.choice(WORDS[names[number % 3]], 4)
            file.write(json.dumps({"key": f"news-{number:03}", "text": " ".join(words)}) + "\n")
    return path


def colours(example_id: str) -> tuple[str, ...]:
    """Which colours a picture has, by its name; "none" has none of them."""
    return tuple(name for name in COLOURS if name in example_id)


def pictures(folder: Path, size: int = 24) -> Path:
    """Stripes of colours; some pictures have two, some none of them."""
    kinds = ["red", "green", "blue", "red-blue", "none", "green-blue"]
    rng = np.random.default_rng(4)
    for number in range(size):
        kind = kinds[number % len(kinds)]
        pixels = rng.integers(90, 110, (16, 16, 3)).astype(np.uint8)
        for at, name in enumerate(colours(kind)):
            pixels[8 * at : 8 * at + 8] = COLOURS[name]
        (folder / "in a folder").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / "in a folder" / f"{number:02} {kind}.png")
    return folder


def settings(shows: str, **selection) -> dict:
    """Quick ones: a small model, few arms, small batches."""
    model = {"name": "probe(steps=20)", "backbone": "hashed-words" if shows == "text" else "pixels"}
    arm = (
        "margin" if shows == "text" else "uncertainty"
    )  # texts have one class here, pictures several
    chosen = {"strategies": ["random", arm], "batch": 8, "holdout": 0.25, "seed": 5}
    return {"model": model, "selection": chosen | selection}


@contextlib.contextmanager
def connected_run(
    project: AnnotatedProject,
    run: Path,
    *,
    token: str = TOKEN,
    messages: list | None = None,
    allow_links=(),
    **options,
):
    """A run linked to a project, as `tailor label-studio connect` links it."""
    studio = Studio(project.server.url, token, project.id, allow_links=allow_links)
    with connected(
        studio, run, say=[].append if messages is None else messages.append, **options
    ) as connection:
        yield connection
    studio.close()


def label_of(sync, example_id: str) -> tuple[str, ...] | None:
    """What the run has for an example."""
    run_state = sync.session.run_state
    label = run_state.label_of(run_state.position[example_id])
    return (
        None if label is None else tuple(run_state.task.classes[k] for k in np.flatnonzero(label))
    )


def labels(sync) -> dict[str, tuple[str, ...]]:
    all_labels = {
        example_id: label_of(sync, example_id) for example_id in sync.session.run_state.ids
    }
    return {example_id: label for example_id, label in all_labels.items() if label is not None}
