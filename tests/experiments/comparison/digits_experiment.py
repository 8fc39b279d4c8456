"""A small experiment on digits, and running one in this process."""

from __future__ import annotations

from tailor_experiments.comparison.experiment import Contender, Experiment
from tailor_experiments.comparison.run import prepare, trials
from tailor_experiments.comparison.trial import Trial

TOML = """
[experiment]
name = "small digits"
batch = 15
rounds = 3
trials = 2
seed = 5

[data]
name = "digits"
options = {classes = 3}

[model]
name = "probe(steps=30)"
device = "cpu"

[[contender]]
label = "TAILOR"

[[contender]]
label = "random"
selector = "random-meta"
families = ["random"]

[[contender]]
label = "ALBL, few"
selector = "albl"
families = ["confidence", "margin"]
"""
SMALL = Experiment(
    "small",
    {"name": "digits", "options": {"classes": 3}},
    {"name": "probe(steps=30)", "device": "cpu"},
    (Contender("TAILOR"), Contender("random", "random-meta", ("random",))),
    batch=15,
    rounds=3,
    trials=2,
)


def run_here(experiment, out):
    """All trials, one after the other, in this process."""
    full = prepare(experiment, out)
    return [
        row for contender, seed in trials(full) for row in Trial(full, contender, seed, out).run()
    ]
