"""Rows that no trial wrote: contenders with the scores that a test wants."""

from __future__ import annotations


def rows_of(scores, *, experiment="made up", families=None):
    """contender -> a final test score for each seed, as rows of one round."""
    found = []
    for contender, values in scores.items():
        own = (families or {}).get(contender, ["galaxy", "badge"])
        selector = "tailor" if contender.startswith("TAILOR") else "random-meta"
        for seed, value in enumerate(values):
            for number in (0, 1):
                row = {
                    "experiment": experiment,
                    "contender": contender,
                    "seed": seed,
                    "round": number,
                    "rounds": 1,
                }
                row |= {
                    "task": "multi-class",
                    "metric": "balanced accuracy",
                    "labels": 10 * (number + 1),
                    "data": "x",
                }
                row |= {
                    "test_score": value if number else 0.5,
                    "score": 0.5,
                    "rarest": 3,
                    "imbalance": 0.5,
                }
                row |= {
                    "positives": 10,
                    "reward": "diversity",
                    "pulls": {},
                    "selector": selector,
                    "families": own,
                }
                row |= {"resumed": False, "seconds": {}}
                found.append(row | {"peak_mib": 1, "versions": {}, "config": "x"})
    return found


def rows_of_curves(curves, *, experiment="made up", batch=10):
    """contender -> seed -> a test score for each round, as rows; the first is that of round 0."""
    found = []
    for contender, trials in curves.items():
        template = rows_of({contender: [0.0]}, experiment=experiment)[0]
        for seed, scores in trials.items():
            for number, score in enumerate(scores):
                place = {"seed": seed, "round": number, "rounds": len(scores) - 1}
                found.append(
                    template | place | {"labels": batch * (number + 1), "test_score": score}
                )
    return found


SCORES = {
    "TAILOR": [0.80, 0.82, 0.81, 0.83],
    "TAILOR, wide": [0.81, 0.82, 0.82, 0.83],
    "galaxy alone": [0.79, 0.83, 0.80, 0.84],
    "badge alone": [0.70, 0.71, 0.72, 0.70],
    "random": [0.70, 0.715, 0.72, 0.72],
    "random meta": [0.90, 0.915, 0.92, 0.93],
}


FAMILIES = {
    "random": ["random"],
    "galaxy alone": ["galaxy"],
    "badge alone": ["badge"],
    "TAILOR, wide": ["galaxy", "x"],
}
