"""How the cost of a round grows with N, K, M and B: one doubling at a time from a base size.

    python benchmarks/growth.py [OUT.jsonl]

Prints the seconds at each point and the exponent of growth (the slope in log-log over the
doublings).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from math import log
from pathlib import Path
from statistics import linear_regression

from tailor.capacity.synthetic_pool import SIZES, PoolSize
from tailor_experiments.speed.selection import measure

SOFTMAX = replace(
    SIZES["kuzushiji"],
    name="softmax",
    pool=100_000,
    classes=20,
    batch=2_000,
)
SIGMOID = replace(
    SIZES["coco"],
    name="sigmoid",
    pool=100_000,
    classes=20,
    batch=2_000,
)


def points(base: PoolSize) -> dict[str, list[PoolSize]]:
    doublings = (1, 2, 4, 8)
    return {
        "N": [replace(base, pool=base.pool // 2 * f) for f in doublings],
        "K (and with it M)": [replace(base, classes=base.classes // 2 * f) for f in doublings],
        "B": [replace(base, batch=base.batch // 2 * f) for f in doublings],
    }


def main() -> None:
    rows_at = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if rows_at:
        rows_at.write_text("")
    for base in (SOFTMAX, SIGMOID):
        for axis, sizes in points(base).items():
            rows = [measure(size, repeats=3) for size in sizes]
            values = [{"N": s.pool, "B": s.batch}.get(axis, s.classes) for s in sizes]
            slope = linear_regression(
                [log(v) for v in values], [log(r["seconds"]) for r in rows]
            ).slope
            times = ", ".join(f"{v:,}: {r['seconds']:.3f} s" for v, r in zip(values, rows))
            print(f"{base.name} {axis}: {times}; exponent {slope:.2f}", flush=True)
            if rows_at:
                with rows_at.open("a") as file:
                    for value, row in zip(values, rows):
                        file.write(json.dumps({"axis": axis, "value": value, **row}) + "\n")


if __name__ == "__main__":
    main()
