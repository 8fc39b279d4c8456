"""The paper's bandit, simulated: what each selector loses against the best arm of every round.

Sections 4.2 and 5 of the TAILOR paper: M arms, each with a mean label theta_i in R^K from the
uniform prior; T rounds of B slots; v^t is shown, the selector plans, and all labels y ~ P(theta)
arrive at once. Bayesian regret is the mean over instances of the sum over rounds and slots of max_i
<v, theta_i> - <v, theta_chosen>.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np

from tailor.bandits import registry
from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.regret.world import RegretSetting, World, draw_labels, draw_world


@dataclass(frozen=True)
class RegretRow:
    """A selector's regret at one setting, over all instances.

    regret  (instances,)
    random  (instances,) random's, on the same instances
    """

    sweep: str
    setting: RegretSetting
    selector: str
    regret: np.ndarray
    random: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.regret.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return standard_error(self.regret)

    @property
    def relative(self) -> float:
        """Regret over random's: 1 has learned nothing. Rewards shrink with K; this does not."""
        return float(self.regret.mean() / self.random.mean())

    @property
    def relative_error(self) -> float:
        """Standard error of a ratio of means, on paired instances."""
        residuals = self.regret - self.relative * self.random
        return float(standard_error(residuals) / self.random.mean())


def standard_error(values: np.ndarray) -> float:
    """Of the mean of values (n,)."""
    spread = values.std(ddof=1)
    return float(spread / np.sqrt(len(values)))


#: what competes: a name for the tables, the selector and its options
COMPETITORS: dict[str, tuple[str, dict[str, Any]]] = {
    "tailor": ("tailor", {"forget": 1.0}),
    "tailor-shrink": ("tailor", {"forget": 0.9, "forgetting": "shrink"}),
    "tailor-prior": ("tailor", {"forget": 0.9, "forgetting": "prior"}),
    "linear-thompson": ("linear-thompson", {}),
    "albl": ("albl", {}),
    "random": ("random-meta", {}),
}

#: the point around which one axis at a time varies
BASE = RegretSetting()
#: field of RegretSetting -> its values; evenly spaced in logarithms, for slopes
AXES: dict[str, tuple[int, ...]] = {
    "rounds": (6, 12, 25, 50, 100),
    "arms": (2, 5, 10, 20, 40),
    "classes": (2, 5, 10, 30, 100),
    "slots": (1, 3, 10, 30, 100),
}
#: small enough for a test
QUICK_BASE = RegretSetting(
    rounds=6,
    arms=4,
    classes=4,
    slots=4,
)
QUICK: dict[str, tuple[int, ...]] = {
    "rounds": (3, 6, 12),
    "arms": (2, 4),
    "classes": (2, 5),
    "slots": (1, 4),
}


def play(
    setting: RegretSetting,
    selector: Selector,
    world: World,
    rng: np.random.Generator,
) -> float:
    """One selector in one world -> its regret."""
    task = selector.contest.task
    counts = np.zeros(setting.classes)
    labelled = 0
    regret = 0.0
    for t in range(setting.rounds):
        theta = world.theta[t]
        v = world.v[t]
        if setting.weights != "random":
            summary = LabelSummary(
                task,
                t,
                counts,
                labelled,
            )
            v = Diversity().weights(summary)
        plan = selector.plan(setting.slots, v, rng)
        regret += _regret(theta @ v, plan)
        # All labels of a round arrive at once: the plan was made without any of them.
        labels = draw_labels(setting, theta[plan], rng)
        teach(
            selector,
            t,
            v,
            plan,
            labels,
        )
        counts = counts + labels.sum(axis=0)
        labelled += len(plan)
    return regret


def _regret(rewards: np.ndarray, plan: np.ndarray) -> float:
    """What a plan (B,) loses against the best arm in every slot. rewards: (M,) in the mean."""
    lost = rewards.max() - rewards[plan]
    return float(lost.sum())


def teach(
    selector: Selector,
    round: int,
    v: np.ndarray,
    plan: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Hand a round's labels over. A selector that needs one reward a call is given <v, y> slot by
    slot.

    That is kinder to ALBL than its own reward, one number a round, which hardly tells arms apart.
    The reward is stretched to [0, 1] by the bounds that are known: 1 in absolute value, 1/K for
    one-hot labels.
    """
    if not selector.needs_fit:
        selector.learn(
            Outcomes(
                round,
                v,
                plan,
                labels,
            )
        )
        return
    task = selector.contest.task
    rewards = _stretched(labels @ v, task)
    for slot, reward in enumerate(rewards.tolist()):
        only = slice(slot, slot + 1)
        outcomes = Outcomes(
            round,
            v,
            plan[only],
            labels[only],
            fit=_fit(reward, task),
        )
        selector.learn(outcomes)


def _stretched(rewards: np.ndarray, task: Task) -> np.ndarray:
    """<v, y> of each slot, in [0, 1]."""
    bound = 1 / task.size if task.kind == "multi-class" else 1.0
    scaled = rewards / bound
    return np.clip((scaled + 1) / 2, 0, 1)


def _fit(reward: float, task: Task) -> Fit:
    """A reward, and nothing of the model that a run would have: there is none here."""
    no_examples = np.zeros(0)
    return Fit(
        no_examples,
        no_examples,
        np.zeros(task.size),
        1,
        reward,
    )


def instance(setting: RegretSetting, seed: int, index: int) -> dict[str, float]:
    """The regret of every competitor in one world; a world depends on the seed and its index
    only.
    """
    world = draw_world(setting, np.random.default_rng([seed, index]))
    contest = _contest(setting)
    regrets = {}
    for label, (name, options) in COMPETITORS.items():
        selector = registry.make(name, **options)
        # The same numbers for all competitors.
        rng = np.random.default_rng([seed, index, 1])
        regrets[label] = play(
            setting,
            selector.begin(contest),
            world,
            rng,
        )
    return regrets


def _contest(setting: RegretSetting) -> Contest:
    """What a selector is told when it begins: every arm is a family of its own, for no class."""
    names = tuple(f"arm{number}" for number in range(setting.arms))
    return Contest(
        _task(setting),
        names,
        names,
        (-1,) * setting.arms,
        setting.rounds,
        setting.slots,
    )


def _task(setting: RegretSetting) -> Task:
    if setting.kind == "multi-class":
        return MultiClass(setting.classes)
    return MultiLabel(setting.classes)


def sweeps(
    axes: dict[str, tuple[int, ...]], base: RegretSetting = BASE
) -> Iterator[tuple[str, RegretSetting]]:
    """Every axis around the base point, for both tasks and both kinds of v; then the drifting
    case.
    """
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            group = replace(base, kind=kind, weights=weights)
            yield from _sweeps_of_group(axes, group)


def _sweeps_of_group(
    axes: dict[str, tuple[int, ...]], group: RegretSetting
) -> Iterator[tuple[str, RegretSetting]]:
    for axis, values in axes.items():
        for value in values:
            changed: dict[str, Any] = {axis: value}
            yield axis, replace(group, **changed)
    # Long enough that an arm changes several times.
    longest = max(axes["rounds"])
    for drift in (0.02, 0.1):
        yield "drift", replace(group, rounds=longest, drift=drift)


def _one_thread() -> None:
    import numba

    # As many processes as cores: threads of each would get in each other's way.
    numba.set_num_threads(1)


def _job(job: tuple[RegretSetting, int, int]) -> dict[str, float]:
    return instance(*job)


def simulate(
    points: Sequence[tuple[str, RegretSetting]],
    *,
    instances: int,
    seed: int = 0,
    workers: int = 2,
) -> list[RegretRow]:
    """All points x instances over a pool of processes. Settings that two sweeps share are played
    once.
    """
    # The base point lies on every axis.
    settings = list(dict.fromkeys(setting for _, setting in points))
    jobs = [(setting, seed, index) for setting in settings for index in range(instances)]
    played = iter(_play_all(jobs, workers, instances))
    regrets = {}
    for setting in settings:
        of_setting = list(islice(played, instances))
        regrets[setting] = _by_selector(of_setting)
    rows: list[RegretRow] = []
    for sweep, setting in points:
        rows += _rows(sweep, setting, regrets[setting])
    return rows


def _by_selector(regrets: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """The regrets of each instance -> selector -> (instances,) its own."""
    by_selector = {}
    for name in COMPETITORS:
        values = [of_instance[name] for of_instance in regrets]
        by_selector[name] = np.array(values)
    return by_selector


def _rows(sweep: str, setting: RegretSetting, regrets: dict[str, np.ndarray]) -> list[RegretRow]:
    rows = []
    for name, regret in regrets.items():
        row = RegretRow(
            sweep,
            setting,
            name,
            regret,
            regrets["random"],
        )
        rows.append(row)
    return rows


def _play_all(
    jobs: Sequence[tuple[RegretSetting, int, int]], workers: int, instances: int
) -> list[dict[str, float]]:
    """The regrets of every job, in their order."""
    if workers < 2:
        return [_job(job) for job in jobs]
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread)
    # A quarter of a setting at a time: few messages, and no worker is left alone with a long one.
    chunk = max(1, instances // 4)
    with pool:
        return list(pool.map(_job, jobs, chunksize=chunk))
