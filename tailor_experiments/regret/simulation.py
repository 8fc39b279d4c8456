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


@dataclass(frozen=True)
class RegretSetting:
    """One point of a sweep.

    weights  "random": v uniform in [-1/K, 1/K]^K; "diversity": from the counts so far
    rounds   T
    arms     M
    classes  K
    slots    B
    drift    chance that an arm's theta is drawn anew, each round
    """

    kind: str = "multi-class"
    weights: str = "random"
    rounds: int = 50
    arms: int = 10
    classes: int = 10
    slots: int = 10
    drift: float = 0.0


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
        spread = self.regret.std(ddof=1)
        return float(spread / np.sqrt(len(self.regret)))

    @property
    def relative(self) -> float:
        """Regret over random's: 1 has learned nothing. Rewards shrink with K; this does not."""
        return float(self.regret.mean() / self.random.mean())

    @property
    def relative_error(self) -> float:
        """Standard error of a ratio of means, on paired instances."""
        residuals = self.regret - self.relative * self.random
        error = residuals.std(ddof=1) / np.sqrt(len(residuals))
        return float(error / self.random.mean())


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
    """What nature fixed beforehand, the same for every selector.

    theta  (T, M, K) the mean label of each arm in each round
    v      (T, K) the weights of each round
    """

    theta: np.ndarray
    v: np.ndarray


def draw_world(setting: RegretSetting, rng: np.random.Generator) -> World:
    """Every arm's mean label from the uniform prior, drawn anew where it drifts."""
    rounds = setting.rounds
    arms = setting.arms
    classes = setting.classes

    def from_prior() -> np.ndarray:
        if setting.kind == "multi-class":
            return rng.dirichlet(np.ones(classes), arms)
        return rng.random((arms, classes))

    theta = np.empty((rounds, arms, classes))
    current = from_prior()
    for t in range(rounds):
        if t > 0 and setting.drift:
            changes = rng.random(arms) < setting.drift
            # All arms are drawn anew whichever change, so that as many numbers are used up.
            redrawn = from_prior()
            current = np.where(changes[:, None], redrawn, current)
        theta[t] = current
    bound = 1 / classes
    v = rng.uniform(-bound, bound, (rounds, classes))
    return World(theta, v)


def draw_labels(setting: RegretSetting, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """theta (n, K), the mean label of each pick -> labels (n, K)."""
    if setting.kind == "multi-label":
        is_positive = rng.random(theta.shape) < theta
        return is_positive.astype(np.float64)
    cumulative = np.cumsum(theta, axis=1)
    drawn = rng.random((len(theta), 1))
    chosen = (cumulative < drawn).sum(axis=1)
    # Rounding may leave the last sum below 1, and a number drawn above it.
    chosen = np.minimum(chosen, setting.classes - 1)
    one_hot = np.eye(setting.classes)
    return one_hot[chosen]


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
        if setting.weights == "random":
            v = world.v[t]
        else:
            summary = LabelSummary(task, t, counts, labelled)
            v = Diversity().weights(summary)
        plan = selector.plan(setting.slots, v, rng)
        rewards = theta @ v
        lost = rewards.max() - rewards[plan]
        regret += float(lost.sum())
        labels = draw_labels(setting, theta[plan], rng)
        teach(selector, t, v, plan, labels)
        counts = counts + labels.sum(axis=0)
        labelled += len(plan)
    return regret


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
        selector.learn(Outcomes(round, v, plan, labels))
        return
    task = selector.contest.task
    bound = 1 / task.size if task.kind == "multi-class" else 1.0
    scaled = labels @ v / bound
    rewards = np.clip((scaled + 1) / 2, 0, 1)
    no_examples = np.zeros(0)
    for slot, reward in enumerate(rewards.tolist()):
        only = slice(slot, slot + 1)
        fit = Fit(
            no_examples,
            no_examples,
            np.zeros(task.size),
            1,
            reward,
        )
        outcomes = Outcomes(
            round,
            v,
            plan[only],
            labels[only],
            fit=fit,
        )
        selector.learn(outcomes)


def instance(setting: RegretSetting, seed: int, index: int) -> dict[str, float]:
    """The regret of every competitor in one world; a world depends on the seed and its index
    only.
    """
    world = draw_world(setting, np.random.default_rng([seed, index]))
    task: Task = MultiLabel(setting.classes)
    if setting.kind == "multi-class":
        task = MultiClass(setting.classes)
    names = tuple(f"arm{number}" for number in range(setting.arms))
    contest = Contest(
        task,
        names,
        names,
        (-1,) * setting.arms,
        setting.rounds,
        setting.slots,
    )
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


def sweeps(
    axes: dict[str, tuple[int, ...]], base: RegretSetting = BASE
) -> Iterator[tuple[str, RegretSetting]]:
    """Every axis around the base point, for both tasks and both kinds of v; then the drifting
    case.
    """
    longest = max(axes["rounds"])
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            group = replace(base, kind=kind, weights=weights)
            for axis, values in axes.items():
                for value in values:
                    changed: dict[str, Any] = {axis: value}
                    yield axis, replace(group, **changed)
            for drift in (0.02, 0.1):
                yield "drift", replace(group, rounds=longest, drift=drift)


def _one_thread() -> None:
    import numba

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
    settings = list(dict.fromkeys(setting for _, setting in points))
    jobs = []
    for setting in settings:
        for index in range(instances):
            jobs.append((setting, seed, index))
    played = iter(_play_all(jobs, workers, instances))
    regrets: dict[RegretSetting, dict[str, np.ndarray]] = {}
    for setting in settings:
        of_setting = list(islice(played, instances))
        regrets[setting] = {}
        for name in COMPETITORS:
            values = [of_instance[name] for of_instance in of_setting]
            regrets[setting][name] = np.array(values)
    rows = []
    for sweep, setting in points:
        random = regrets[setting]["random"]
        for name, regret in regrets[setting].items():
            row = RegretRow(
                sweep,
                setting,
                name,
                regret,
                random,
            )
            rows.append(row)
    return rows


def _play_all(
    jobs: Sequence[tuple[RegretSetting, int, int]],
    workers: int,
    instances: int,
) -> list[dict[str, float]]:
    """The regrets of every job, in their order."""
    if workers < 2:
        return [_job(job) for job in jobs]
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_one_thread,
    )
    # A quarter of a setting at a time: few messages, and no worker is left alone with a long one.
    chunk = max(1, instances // 4)
    with pool:
        return list(pool.map(_job, jobs, chunksize=chunk))
