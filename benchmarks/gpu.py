"""Selection on a GPU: the same picks as on the CPU, and the seconds of every size.

    python benchmarks/gpu.py OUT [size ...]

Writes OUT/selection_cuda.jsonl, a row a size, and OUT/same_picks.jsonl, a row an arm family and
task.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tailor import strategies
from tailor.capacity.synthetic_pool import SIZES, make_pool
from tailor.selection.array_view import ArrayView
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor_experiments.speed.selection import measure


def same_picks(multilabel: bool) -> list[dict[str, object]]:
    """For each family, the share of equal picks on both devices, slot by slot, in a batch of 500 of
    20,000.
    """
    size = replace(
        SIZES["celeba" if multilabel else "kuzushiji"],
        pool=20_000,
        classes=12,
        batch=500,
        features=64,
    )
    pool = make_pool(size)
    rows = []
    labels = pool.labels[pool.labelled]
    other = np.clip(pool.probs * 0.9, 0, 1) if multilabel else pool.probs[:, ::-1].copy()
    for name in strategies.registry:
        if size.task.kind not in strategies.registry.find(name).tasks:
            continue
        arms = make_arms([name], size.task)
        plan = np.random.default_rng(0).integers(0, len(arms), size.batch)
        picks = []
        for device in ("cpu", "cuda"):
            view = ArrayView(
                size.task,
                pool.probs,
                pool.features,
                labelled=pool.labelled,
                labels=labels,
                device=device,
                finetune=lambda targets, epochs: targets * 0.8,
                dropout=lambda: [pool.probs, other],
            )
            picks.append(Round(view, arms, plan, 0).batch().indices)
        rows.append(
            {
                "family": name,
                "task": size.task.kind,
                "same": float((picks[0] == picks[1]).mean()),
            }
        )
    return rows


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with (out / "same_picks.jsonl").open("w") as file:
        for row in [*same_picks(False), *same_picks(True)]:
            print(row, flush=True)
            file.write(json.dumps(row) + "\n")
    with (out / "selection_cuda.jsonl").open("w") as file:
        for name in sys.argv[2:] or SIZES:
            row = measure(SIZES[name], "cuda", repeats=3)
            print(
                {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True
            )
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
