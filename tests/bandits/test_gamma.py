"""The compiled sampler against scipy: whole distributions, not only moments. Seeds are fixed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from tailor.bandits.posteriors import gamma, ziggurat


@pytest.mark.parametrize("shape", [0.02, 0.3, 0.999, 1.0, 1.7, 12.0, 800.0])
def test_gamma_has_the_right_distribution(shape: float) -> None:
    drawn = gamma.gamma_numbers(shape, 200_000, 11)
    # a right sampler fails each of these with chance 1 in 1,000; the seed is fixed
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 1e-3
    assert abs(drawn.mean() - shape) < 4 * np.sqrt(shape / len(drawn))
    spread = shape * np.sqrt((2 + 6 / shape) / len(drawn))  # standard error of the variance
    assert abs(drawn.var() - shape) < 4 * spread


def test_shape_zero_gives_zero() -> None:
    assert (gamma.gamma_numbers(0.0, 5, 1) == 0).all()


def test_ziggurat_layers_have_equal_areas() -> None:
    x = ziggurat.NORMAL_X
    f = ziggurat.NORMAL_F
    areas = x[1:256] * (f[2:257] - f[1:256])
    assert np.ptp(areas) < 1e-9
    assert f[256] == 1


def test_tails_are_reached() -> None:
    # exponentials beyond 8 come from the ziggurat's tail; a gamma of shape 1 is an exponential
    drawn = gamma.gamma_numbers(1.0, 2_000_000, 5)
    expected = 2_000_000 * np.exp(-8)
    assert abs((drawn > 8).sum() - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 0.2), (5.0, 40.0), (0.05, 3.0)])
def test_beta_scores_are_beta(a: float, b: float) -> None:
    drawn = gamma.beta_scores(np.array([[a]]), np.array([[b]]), np.array([1.0]), 50_000, 3)[:, 0]
    assert stats.kstest(drawn, stats.beta(a, b).cdf).pvalue > 1e-3


def test_dirichlet_scores_match_numpy() -> None:
    a = np.array([[0.4, 2.0, 7.0]])
    v = np.array([0.3, -0.2, 0.1])
    drawn = gamma.dirichlet_scores(a, v, 50_000, 3)[:, 0]
    plain = np.random.default_rng(0).dirichlet(a[0], 50_000) @ v
    assert stats.ks_2samp(drawn, plain).pvalue > 1e-3


def test_tiny_shapes_reach_their_limit() -> None:
    # gamma(1e-6) underflows to 0: Beta is then a coin with chance a / (a + b), Dirichlet one class
    drawn = gamma.beta_scores(np.array([[3e-6]]), np.array([[1e-6]]), np.array([1.0]), 20_000, 1)[
        :, 0
    ]
    assert np.isin(drawn, [0, 1]).all()
    assert abs(drawn.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 20_000)
    picked = gamma.dirichlet_scores(
        np.array([[1e-6, 0.0, 3e-6]]), np.array([1.0, 2.0, 3.0]), 20_000, 1
    )[:, 0]
    assert np.isin(picked, [1, 3]).all()
    assert abs((picked == 3).mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 20_000)


def test_zero_on_one_side_is_certain() -> None:
    drawn = gamma.beta_scores(
        np.array([[0.0, 2.0]]), np.array([[2.0, 0.0]]), np.array([0.25, 0.5]), 100, 1
    )
    assert (drawn == 0.5).all()


def test_arms_and_chunks_are_independent() -> None:
    scores = gamma.beta_scores(np.ones((4, 1)), np.ones((4, 1)), np.ones(1), 8 * gamma.CHUNK, 9)
    series = np.concatenate([scores.T, scores.T.reshape(4, 8, gamma.CHUNK)[0, :1].repeat(8, 1)])
    assert np.abs(np.corrcoef(series[:4]) - np.eye(4)).max() < 0.1
    chunks = scores[:, 0].reshape(8, gamma.CHUNK)
    assert np.abs(np.corrcoef(chunks) - np.eye(8)).max() < 0.3
    assert len(np.unique(scores)) == scores.size


_PRINT = (
    "import numpy as np; from tailor.bandits.posteriors import gamma as g; a = np.linspace(0.3, 4, "
    "12).reshape(4, 3);"
    "v = np.array([.1, -.2, .3]);"
    "print(g.beta_plan(a, a[::-1].copy(), v, 700, 5).tolist(), g.dirichlet_plan(a, v, 700, "
    "5).tolist())"
)


def test_same_seed_same_plan_in_another_process_with_other_threads() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "NUMBA_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "4")
    }
    a = np.linspace(0.3, 4, 12).reshape(4, 3)
    v = np.array([0.1, -0.2, 0.3])
    multi_label = gamma.beta_plan(a, a[::-1].copy(), v, 700, 5)
    multi_class = gamma.dirichlet_plan(a, v, 700, 5)
    assert printed == {f"{multi_label.tolist()} {multi_class.tolist()}\n"}
