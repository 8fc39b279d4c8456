"""From pools to weights and a report: `tailor bench policy train`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.strategies.policy_network import write_weights
from tailor_experiments.comparison.table_format import Table
from tailor_experiments.policy.imitation import State, draw_states
from tailor_experiments.policy.judging import PoolJudgement, judge
from tailor_experiments.policy.pools import LabelledPool, built_in_pools, read_pool
from tailor_experiments.policy.report import as_markdown, result_tables, verdict
from tailor_experiments.policy.training import train

WEIGHTS = "learned.safetensors"
REPORT = "report.md"


@dataclass(frozen=True)
class MadePolicy:
    """What was made."""

    weights: Path
    report: Path
    judgements: list[PoolJudgement]
    tables: list[Table]
    verdict: str  # empty where nothing was judged


def make_policy(
    folders: Sequence[Path],
    out: Path,
    *,
    states: int,
    trials: int,
    seed: int,
    say: Callable[[str], None],
) -> MadePolicy:
    """Train on all pools, and judge on each by weights that were trained on the others.

    folders  of pools besides the built-in ones
    states   of each pool
    trials   on each pool; 0: nothing is judged

    Raises InputError where two pools have one name: what is left out must be clear.
    """
    pools = [*built_in_pools(), *map(read_pool, folders)]
    names = [pool.name for pool in pools]
    _check_differ(names)
    states_of: dict[str, list[State]] = {}
    for number, pool in enumerate(pools):
        rng = np.random.default_rng((seed, number))
        states_of[pool.name] = draw_states(pool, states, rng)
        say(f"{pool.name}: {states} states of {len(pool.features)} examples")
    out.mkdir(parents=True, exist_ok=True)
    command = _command(folders, states, trials, seed)
    facts = {"command": command, "pools": ", ".join(names)}
    judgements = _judge_all(
        pools,
        states_of,
        out,
        trials,
        seed,
        say,
    )
    weights = out / WEIGHTS
    all_states = [state for states_here in states_of.values() for state in states_here]
    write_weights(weights, train(all_states, seed), facts)
    tables = result_tables(judgements)
    conclusion = ""
    if judgements:
        conclusion = verdict(judgements)
    report = out / REPORT
    lines = [f"Made by `{command}` from the pools {facts['pools']}.", "", conclusion]
    report.write_text(as_markdown(tables, lines), encoding="utf-8")
    return MadePolicy(
        weights,
        report,
        judgements,
        tables,
        conclusion,
    )


def _check_differ(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two pools are named {name!r}: rename the folder of one")


def _command(folders: Sequence[Path], states: int, trials: int, seed: int) -> str:
    """How the same is made again, from folders of these names."""
    words = ["tailor", "bench", "policy", "train"]
    words += [folder.name for folder in folders]
    words += ["--states", str(states)]
    words += ["--trials", str(trials)]
    words += ["--seed", str(seed)]
    return shlex.join(words)


def _judge_all(
    pools: Sequence[LabelledPool],
    states_of: dict[str, list[State]],
    out: Path,
    trials: int,
    seed: int,
    say: Callable[[str], None],
) -> list[PoolJudgement]:
    """Each pool by weights of all others."""
    judgements: list[PoolJudgement] = []
    if trials == 0:
        return judgements
    for pool in pools:
        others = []
        for name, states in states_of.items():
            if name != pool.name and not _same_pictures(name, pool.name):
                others += states
        weights = out / f"without-{pool.name}.safetensors"
        write_weights(weights, train(others, seed), {"left out": pool.name})
        judgements.append(judge(pool, weights, trials, seed))
        say(f"{pool.name}: judged")
    return judgements


def _same_pictures(first: str, second: str) -> bool:
    """Whether two pools are one dataset with different labels, as both kinds of digits are."""
    return first.split("-")[0] == second.split("-")[0]
