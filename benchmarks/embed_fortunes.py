"""Features of short texts on two dozen topics, for experiments with few labels.

    python benchmarks/embed_fortunes.py OUT FOLDER

FOLDER is what Debian's package `fortunes` installs: a file a topic, its texts divided by lines of
"%". A fifth of each topic, drawn at random, becomes the test set. Writes OUT/train.npz and
OUT/test.npz as benchmarks/embed.py does; the backbone is MiniLM (the extra `text`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from embed import write

from tailor.models.backbones import make_backbone
from tailor.pools import open_pool

#: Files that are about something; others gather texts of all kinds.
TOPICS = [
    "art",
    "drugs",
    "education",
    "ethnic",
    "food",
    "kids",
    "law",
    "linux",
    "literature",
    "love",
    "medicine",
    "men-women",
    "perl",
    "pets",
    "politics",
    "riddles",
    "science",
    "songs-poems",
    "sports",
    "startrek",
    "work",
    "zippy",
]
BATCH = 64


def read_topics(folder: Path) -> tuple[list[str], list[int]]:
    """All texts, each once, and the topic's number of each."""
    texts: dict[str, int] = {}
    for number, topic in enumerate(TOPICS):
        content = (folder / topic).read_text(encoding="utf-8", errors="replace")
        for part in content.split("\n%\n"):
            text = " ".join(part.split())
            if text:
                # Of a text that two topics have, the first keeps it.
                texts.setdefault(text, number)
    return list(texts), list(texts.values())


def embed_texts(texts: list[str]) -> np.ndarray:
    """(N, d) float32"""
    features = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        lines = [json.dumps({"text": text}) for text in texts]
        path.write_text("\n".join(lines), encoding="utf-8")
        pool = open_pool(path)
        backbone = make_backbone("minilm", pool, "cpu")
        for start in range(0, len(texts), BATCH):
            stop = min(start + BATCH, len(texts))
            examples = pool.read(range(start, stop))
            features.append(np.asarray(backbone.embed(examples), np.float32))
    return np.concatenate(features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    texts, topics = read_topics(options.folder)
    features = embed_texts(texts)
    is_test = np.random.default_rng(0).random(len(texts)) < 0.2
    for split, is_in in (("train", ~is_test), ("test", is_test)):
        rows = np.flatnonzero(is_in)
        labels = [topics[row] for row in rows]
        write(options.out / f"{split}.npz", features[rows], labels, TOPICS)
        print(f"{split}: {len(rows)} texts of {len(TOPICS)} topics")


if __name__ == "__main__":
    main()
