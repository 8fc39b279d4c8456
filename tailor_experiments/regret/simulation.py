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
from multiprocessing import get_context
from typing import Any

import numpy as np

from tailor.bandits import registry
from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.bandits.rewards import Diversity, LabelSummary
from tailor.task import MultiClass, MultiLabel, Task


@dataclass(frozen=True)
class RegretSetting:
    """One point of a sweep."""

    kind: str = "multi-class"
    weights: str = "random"  # v uniform in [-1/K, 1/K]^K, or "diversity": from the counts so far
    rounds: int = 50  # T
    arms: int = 10  # M
    classes: int = 10  # K
    slots: int = 10  # B
    drift: float = 0.0  # chance that an arm's theta is drawn anew, each round


@dataclass(frozen=True)
class RegretRow:
    """A selector's regret at one setting, over all instances."""

    sweep: str
    setting: RegretSetting
    selector: str
    regret: np.ndarray  # (instances,)
    random: np.ndarray  # (instances,) random's, on the same instances

    @property
    def mean(self) -> float:
        return float(self.regret.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(self.regret.std(ddof=1) / np.sqrt(len(self.regret)))

    @property
    def relative(self) -> float:
        """Regret over random's: 1 has learned nothing. Rewards shrink with K; this does not."""
        return float(self.regret.mean() / self.random.mean())

    @property
    def relative_error(self) -> float:
        """Standard error of a ratio of means, on paired instances."""
        left = self.regret - self.relative * self.random
        return float(left.std(ddof=1) / np.sqrt(len(left)) / self.random.mean())


#: what competes: a name for the tables, the selector and its options
COMPETITORS: dict[str, tuple[str, dict[str, Any]]] = {
    "tailor": ("tailor", {"forget": 1.0}),
    "tailor-shrink": ("tailor", {"forget": 0.9, "forgetting": "shrink"}),
    "tailor-prior": ("tailor", {"forget": 0.9, "forgetting": "prior"}),
    "linear-thompson": ("linear-thompson", {}),
    "albl": ("albl", {}),
    "random": ("random-meta", {}),
}

BASE = RegretSetting()
AXES: dict[str, tuple[int, ...]] = {
    "rounds": (6, 12, 25, 50, 100),
    "arms": (2, 5, 10, 20, 40),
    "classes": (2, 5, 10, 30, 100),
    "slots": (1, 3, 10, 30, 100),
}
QUICK_BASE = RegretSetting(rounds=6, arms=4, classes=4, slots=4)
QUICK: dict[str, tuple[int, ...]] = {
    "rounds": (3, 6, 12),
    "arms": (2, 4),
    "classes": (2, 5),
    "slots": (1, 4),
}


@dataclass(frozen=True)
class World:
    """What nature fixed beforehand, the same for every selector."""

    theta: np.ndarray  # (T, M, K)
    v: np.ndarray  # (T, K)


def draw_world(setting: RegretSetting, rng: np.random.Generator) -> World:
    t = setting.rounds
    m = setting.arms
    k = setting.classes

    def prior(n: int) -> np.ndarray:
        return rng.dirichlet(np.ones(k), n) if setting.kind == "multi-class" else rng.random((n, k))

    theta = np.empty((t, m, k))
    now = prior(m)
    for i in range(t):
        if i and setting.drift:
            anew = rng.random(m) < setting.drift
            now = np.where(anew[:, None], prior(m), now)
        theta[i] = now
    return World(theta, rng.uniform(-1 / k, 1 / k, (t, k)))


def draw_labels(setting: RegretSetting, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """theta (n, K), the mean label of each pick -> labels (n, K)."""
    if setting.kind == "multi-label":
        return (rng.random(theta.shape) < theta).astype(np.float64)
    chosen = (np.cumsum(theta, axis=1) < rng.random((len(theta), 1))).sum(axis=1)
    return np.eye(setting.classes)[np.minimum(chosen, setting.classes - 1)]


def play(
    setting: RegretSetting, selector: Selector, world: World, rng: np.random.Generator
) -> float:
    """One selector in one world -> its regret."""
    task = selector.contest.task
    k = setting.classes
    counts = np.zeros(k)
    labelled = 0
    lost = 0.0
    for t in range(setting.rounds):
        v = (
            world.v[t]
            if setting.weights == "random"
            else Diversity().weights(LabelSummary(task, t, counts, labelled))
        )
        plan = selector.plan(setting.slots, v, rng)
        worth = world.theta[t] @ v
        lost += float((worth.max() - worth[plan]).sum())
        labels = draw_labels(setting, world.theta[t][plan], rng)
        teach(selector, t, v, plan, labels)
        counts = counts + labels.sum(axis=0)
        labelled = labelled + len(plan)
    return lost


def teach(
    selector: Selector, round: int, v: np.ndarray, plan: np.ndarray, labels: np.ndarray
) -> None:
    """Hand a round's labels over. A selector that needs one reward a call is given <v, y> slot by
    slot.

    That is kinder to ALBL than its own reward, one number a round, which hardly tells arms apart.
    The reward is stretched to [0, 1] by the bounds that are known: 1 in absolute value, 1/K for
    one-hot labels.
    """
    if not selector.needs_fit:
        selector.learn(Outcomes(round, v, plan, labels))
        return
    task = selector.contest.task
    bound = 1 / task.size if task.kind == "multi-class" else 1.0
    rewards = np.clip((labels @ v / bound + 1) / 2, 0, 1)
    nothing = np.zeros(0)
    for j in range(len(plan)):
        fit = Fit(nothing, nothing, np.zeros(task.size), 1, float(rewards[j]))
        selector.learn(Outcomes(round, v, plan[j : j + 1], labels[j : j + 1], fit=fit))


def instance(setting: RegretSetting, seed: int, index: int) -> dict[str, float]:
    """The regret of every competitor in one world; a world depends on the seed and its index
    only.
    """
    world = draw_world(setting, np.random.default_rng([seed, index]))
    task: Task = (MultiClass if setting.kind == "multi-class" else MultiLabel)(setting.classes)
    names = tuple(f"arm{i}" for i in range(setting.arms))
    contest = Contest(task, names, names, (-1,) * setting.arms, setting.rounds, setting.slots)
    lost = {}
    for label, (name, options) in COMPETITORS.items():
        selector = registry.make(name, **options).begin(contest)
        lost[label] = play(setting, selector, world, np.random.default_rng([seed, index, 1]))
    return lost


def sweeps(
    axes: dict[str, tuple[int, ...]], base: RegretSetting = BASE
) -> Iterator[tuple[str, RegretSetting]]:
    """Every axis around the base point, for both tasks and both kinds of v; then the drifting
    case.
    """
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            for axis, values in axes.items():
                for value in values:
                    yield axis, replace(base, kind=kind, weights=weights, **{axis: value})
            for drift in (0.02, 0.1):
                longest = max(axes["rounds"])
                yield (
                    "drift",
                    replace(base, kind=kind, weights=weights, rounds=longest, drift=drift),
                )


def _one_thread() -> None:
    import numba

    numba.set_num_threads(1)


def _job(job: tuple[RegretSetting, int, int]) -> dict[str, float]:
    return instance(*job)


def simulate(
    points: Sequence[tuple[str, RegretSetting]], *, instances: int, seed: int = 0, workers: int = 2
) -> list[RegretRow]:
    """All points x instances over a pool of processes. Settings that two sweeps share are played
    once.
    """
    settings = list(dict.fromkeys(setting for _, setting in points))
    jobs = [(setting, seed, i) for setting in settings for i in range(instances)]
    if workers > 1:
        with ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_one_thread
        ) as pool:
            played = list(pool.map(_job, jobs, chunksize=max(1, instances // 4)))
    else:
        played = [_job(job) for job in jobs]
    found = {
        setting: {
            name: np.array([p[name] for p in played[i * instances : (i + 1) * instances]])
            for name in COMPETITORS
        }
        for i, setting in enumerate(settings)
    }
    return [
        RegretRow(sweep, setting, name, found[setting][name], found[setting]["random"])
        for sweep, setting in points
        for name in COMPETITORS
    ]
