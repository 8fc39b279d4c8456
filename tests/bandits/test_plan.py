"""The plan, drawn fast, against a plain loop over draws and arms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tailor.bandits import ThompsonSampling
from tailor.bandits.base import Contest, Outcomes
from tailor.bandits.posteriors import BetaPosterior, DirichletPosterior
from tailor.bandits.posteriors.torch_plan import torch_plan

ROWS = 6_000


Array = np.ndarray


def plain_beta(a: Array, b: Array, v: Array, draws: int, rng: np.random.Generator) -> Array:
    """Oracle: one draw, one arm at a time."""
    picked = np.empty(draws, np.int64)
    for j in range(draws):
        scores = np.array([v @ rng.beta(a[i], b[i]) for i in range(len(a))])
        picked[j] = rng.choice(np.flatnonzero(scores == scores.max()))
    return picked


def plain_dirichlet(
    a: np.ndarray, v: np.ndarray, draws: int, rng: np.random.Generator
) -> np.ndarray:
    picked = np.empty(draws, np.int64)
    for j in range(draws):
        scores = np.array([v @ rng.dirichlet(a[i]) for i in range(len(a))])
        picked[j] = rng.choice(np.flatnonzero(scores == scores.max()))
    return picked


def check_same_distribution(first: np.ndarray, second: np.ndarray, arms: int) -> None:
    """Chi-square on two rows of pulls; equal distributions fail with chance 1 in 1,000. Seeds are
    fixed.
    """
    table = np.stack([np.bincount(x, minlength=arms) for x in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def taught(contest: Contest, kind: type, prior: float) -> BetaPosterior | DirichletPosterior:
    rng = np.random.default_rng(4)
    made = kind(contest, prior=prior, forget=0.7)
    for _ in range(2):
        arms = rng.integers(contest.size, size=12)
        if kind is BetaPosterior:
            vectors = (rng.random((12, contest.task.size)) < 0.3).astype(float)
        else:
            vectors = np.eye(contest.task.size)[rng.integers(contest.task.size, size=12)]
        made.learn(arms, vectors)
    return made


V = np.array([0.2, -0.1, 0.2, 0.0, 0.05])


@pytest.mark.parametrize("prior", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("how", ["numba", "torch"])
def test_beta_plan_is_the_plain_loops(contest, prior: float, how: str) -> None:
    made = taught(contest("multi-label", arms=4, classes=5), BetaPosterior, prior)
    a, b = made.parameters()
    rng = np.random.default_rng(1)
    if how == "numba":
        fast = made.plan(40_000, V, rng)
    else:
        fast = torch_plan(a, b, V, 40_000, rng, device="cpu", memory=70_000)
    check_same_distribution(fast, plain_beta(a, b, V, ROWS, np.random.default_rng(2)), 4)


@pytest.mark.parametrize("prior", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("how", ["numba", "torch"])
def test_dirichlet_plan_is_the_plain_loops(
    contest, prior: float, aggregate: bool, how: str
) -> None:
    made = taught(contest("multi-class", arms=4, classes=5), DirichletPosterior, prior)
    rng = np.random.default_rng(1)
    if how == "numba":
        fast = made.plan(40_000, V, rng, aggregate=aggregate)
    else:
        fast = torch_plan(*_split(made, aggregate), 40_000, rng, device="cpu", memory=70_000)
    check_same_distribution(
        fast, plain_dirichlet(made.parameters()[:, :-1], V, ROWS, np.random.default_rng(2)), 4
    )


def _split(made: DirichletPosterior, aggregate: bool) -> tuple[np.ndarray, None, np.ndarray]:
    a, v = made._groups(V, aggregate)
    assert len(v) == (4 if aggregate else 5)
    return a, None, v


def test_rest_takes_part(contest) -> None:
    made = DirichletPosterior(contest("multi-class", arms=2, classes=2), forget=1.0)
    made.learn(np.array([0, 0, 0, 1]), np.array([[0.2, 0.1], [0.3, 0.0], [0.4, 0.1], [0.5, 0.5]]))
    v = np.array([0.5, 0.25])
    fast = made.plan(40_000, v, np.random.default_rng(1))
    a = np.maximum(made.parameters(), 1e-9)
    slow = plain_dirichlet(a, np.append(v, 0), ROWS, np.random.default_rng(2))
    check_same_distribution(fast, slow, 2)
    samples = made.scores(40_000, v, np.random.default_rng(3))
    np.testing.assert_allclose(samples.mean(axis=0), made.mean() @ v, atol=4 * samples.std() / 200)


@pytest.mark.parametrize("how", ["numba", "torch"])
@pytest.mark.parametrize("aggregate", [True, False])
def test_ties_are_random(contest, how: str, aggregate: bool) -> None:
    """Equal weights make every arm of a Dirichlet equal; zero weights every arm of a Beta."""
    game = contest("multi-class", arms=5, classes=3)
    many = DirichletPosterior(game)
    a, v = many._groups(np.full(3, 1 / 3), aggregate)
    rng = np.random.default_rng(0)
    if how == "numba":
        plans = [many.plan(5_000, np.full(3, 1 / 3), rng, aggregate=aggregate)]
        plans.append(
            BetaPosterior(contest("multi-label", arms=5, classes=3)).plan(5_000, np.zeros(3), rng)
        )
    else:
        ones = np.ones((5, 3))
        plans = [torch_plan(a, None, v, 5_000, rng, device="cpu")]
        plans.append(torch_plan(ones, ones, np.zeros(3), 5_000, rng, device="cpu"))
    for plan in plans:
        assert stats.chisquare(np.bincount(plan, minlength=5)).pvalue > 1e-3


def test_torch_reaches_the_limit_of_tiny_shapes() -> None:
    rng = np.random.default_rng(0)
    a = np.array([[3e-6, 1e-6], [1e-6, 3e-6]])
    plan = torch_plan(a, None, np.array([1.0, 0.0]), 20_000, rng, device="cpu")
    # arm 0 wins where it draws class 0 and the other does not, and half of the ties
    expected = 0.75 * 0.75 + 0.5 * (0.75 * 0.25 + 0.25 * 0.75)
    assert abs((plan == 0).mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_another_device_samples_with_torch(
    contest, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TAILOR on a device plans as torch does there; here the name is caught and the CPU stands
    in.
    """
    asked = []

    def here(*args: object, device: str) -> np.ndarray:
        asked.append(device)
        return torch_plan(*args, device="cpu")

    monkeypatch.setattr("tailor.bandits.posteriors.torch_plan.torch_plan", here)
    game = contest(kind, arms=3, classes=5)
    on_device = ThompsonSampling(device="cuda:1").begin(game)
    on_host = ThompsonSampling().begin(game)
    given = Outcomes(0, V, np.array([0, 1, 1, 2]), np.eye(5)[[0, 0, 1, 3]])
    for made in (on_device, on_host):
        made.learn(given)
    plans = [made.plan(20_000, V, np.random.default_rng(5)) for made in (on_device, on_host)]
    assert asked == ["cuda:1"]
    check_same_distribution(*plans, 3)
