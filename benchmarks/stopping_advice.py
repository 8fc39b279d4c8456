"""Whether the advice to go on or to stop is right, on recorded runs whose future is known.

    python benchmarks/stopping_advice.py [--trials T] [--holdout S] [--out FILE]

Every recorded run of benchmarks/results/few-* is cut off at every fourth round. What the hold-out
would have measured up to there is drawn from the recorded scores on the test set: the hold-out is a
share S of the labels (15% unless told) and grows with them, and an example that one round has right
every better round has right too. Then the expected gain of the next 100 labels (or as far as the
run was recorded in its steps) is compared with what came. One row of FILE for each experiment:

held        share of the 95% intervals that hold the gain that came
error       mean distance between expected and actual gain
advice      for each verdict: how often it was given, and the gain that came on average
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tailor.insight.advice import NEXT_LABELS, _decide_gain
from tailor.insight.learning_curve import Measurement, expected_gain

RESULTS = Path(__file__).parent / "results"
#: the first round that runs are cut off at, and every how many rounds after it
FIRST_CUT = 5
CUT_EVERY = 4

Run = list[tuple[int, float]]


def recorded_runs(path: Path, trials: int) -> list[Run]:
    """Labels and score on the test set of every round, for each run of an experiment."""
    runs: dict[tuple[str, int], Run] = defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["seed"] < trials:
                runs[row["contender"], row["seed"]].append((row["labels"], row["test_score"]))
    return [sorted(run) for run in runs.values()]


def measured(run: Run, share: float, rng: np.random.Generator) -> list[Measurement]:
    """What a hold-out would have said after each round but the first, which has no model yet."""
    difficulty = rng.random(round(share * run[-1][0]) + 1)
    measurements = []
    for labels, score in run[1:]:
        examples = max(1, round(share * labels))
        is_right = difficulty[:examples] < score
        measurements.append(Measurement(labels, examples, float(is_right.mean())))
    return measurements


def judge(runs: list[Run], share: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    held = []
    errors = []
    by_verdict: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        measurements = measured(run, share, rng)
        for cut in range(FIRST_CUT, len(run), CUT_EVERY):
            labels, score = run[cut]
            later = [row for row in run[cut:] if row[0] >= labels + NEXT_LABELS]
            if not later:
                continue
            later_labels, later_score = later[0]
            gain = expected_gain(measurements[:cut], later_labels - labels)
            assert gain is not None
            came = later_score - score
            held.append(gain.lower <= came <= gain.upper)
            errors.append(abs(gain.gain - came))
            verdict, _ = _decide_gain(gain)
            by_verdict[verdict].append(came)
    advice = {}
    for verdict, gains in sorted(by_verdict.items()):
        advice[verdict] = {"times": len(gains), "came": round(float(np.mean(gains)), 4)}
    return {
        "cuts": len(held),
        "held": round(float(np.mean(held)), 3),
        "error": round(float(np.mean(errors)), 4),
        "advice": advice,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--holdout", type=float, default=0.15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    everything: list[Run] = []
    rows = []
    for path in sorted(RESULTS.glob("few-*/rows.jsonl.gz")):
        runs = recorded_runs(path, options.trials)
        everything += runs
        rows.append({"experiment": path.parent.name} | judge(runs, options.holdout, seed=0))
    rows.append({"experiment": "all"} | judge(everything, options.holdout, seed=0))
    for row in rows:
        print(json.dumps(row), flush=True)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
