"""The learned family's weights: candidate batches, training, judging, the command."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from tailor.cli import app as cli
from tailor.errors import InputError
from tailor.strategies.learned import Learned
from tailor.strategies.policy_inputs import INPUTS
from tailor.strategies.policy_network import PolicyNetwork, facts_of
from tailor.task import MultiLabel
from tailor_experiments.policy import imitation, judging, make, pools, training
from tailor_experiments.policy.imitation import State, draw_states
from tailor_experiments.policy.judging import PoolJudgement
from tailor_experiments.policy.pools import read_pool, skewed_clusters
from tailor_experiments.policy.report import best_rule, result_tables, verdict
from tailor_experiments.policy.trial_head import TrialHead


@pytest.fixture
def quick(monkeypatch):
    """Small pools, few batches, short training: seconds instead of minutes."""
    monkeypatch.setattr(pools, "EXAMPLES", 120)
    monkeypatch.setattr(pools, "MOST_EXAMPLES", 100)
    monkeypatch.setattr(imitation, "BATCHES", 6)
    monkeypatch.setattr(training, "EPOCHS", 3)
    monkeypatch.setattr(judging, "ROUNDS", 2)


@pytest.mark.usefixtures("quick")
def test_a_state_knows_what_each_batch_was_worth():
    """The gain is what a head gains by the labels of the very examples whose inputs are kept."""
    pool = skewed_clusters(np.random.default_rng(0))
    (state,) = draw_states(pool, 1, np.random.default_rng(3))
    assert state.inputs.shape == (6, imitation.BATCH, len(INPUTS))
    assert state.gains.shape == (6,)
    assert np.isfinite(state.inputs).all()
    assert state.gains.std() > 0
    again = draw_states(pool, 1, np.random.default_rng(3))[0]
    assert (state.inputs == again.inputs).all()
    assert (state.gains == again.gains).all()


def test_a_head_learns_and_goes_on_where_another_stopped():
    pool = skewed_clusters(np.random.default_rng(0))
    few = np.arange(20)
    head = TrialHead(pool).fit(few)
    more = TrialHead(pool, head).fit(np.arange(300))
    assert more.test_score() > head.test_score() > 1 / 6
    assert more.predict(pool.features[:3]).sum(1) == pytest.approx(np.ones(3), abs=1e-5)


def test_the_network_learns_which_input_made_batches_good(tmp_path, monkeypatch):
    """Batches whose margins are small gain most: so it must prefer small margins."""
    monkeypatch.setattr(training, "EPOCHS", 30)
    rng = np.random.default_rng(0)
    margin = INPUTS.index("margin")
    states = []
    for _ in range(40):
        inputs = rng.random((12, 8, len(INPUTS))).astype(np.float32)
        inputs[:, :, margin] *= rng.random((12, 1))
        states.append(State(inputs, -inputs[:, :, margin].mean(1)))
    network = PolicyNetwork(training.train(states, seed=0))
    import torch

    examples = torch.full((2, len(INPUTS)), 0.5, dtype=torch.float64)
    examples[0, margin] = 0.1
    small, large = network.scores(examples).tolist()
    assert small > large


def test_equal_gains_are_imitated_evenly():
    assert training._imitated(np.zeros(4)).tolist() == [0.25] * 4
    shares = training._imitated(np.array([0.0, 0.1, 0.3]))
    assert shares.argmax() == 2
    assert shares.sum() == pytest.approx(1)


def test_the_report_names_the_best_rule():
    scores = {
        "learned": np.array([0.5, 0.6]),
        "random": np.array([0.4, 0.5]),
        "margin": np.array([0.7, 0.8]),
    }
    judgement = PoolJudgement("toys", "multi-class", scores)
    assert best_rule(judgement) == "margin"
    (table,) = result_tables([judgement])
    assert table.rows[0][-1].endswith("(margin)")
    assert "ahead of random on 1 of 1, and of the best of its plain rules on 0, by -0.2000" in (
        verdict([judgement])
    )


@pytest.mark.usefixtures("quick")
def test_the_command_writes_weights_that_the_family_reads(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        np.savez(
            folder / f"{split}.npz",
            x=rng.standard_normal((80, 5)).astype(np.float32),
            y=rng.integers(0, 2, (80, 3)),
            classes=np.array(["a", "b", "c"]),
        )
    out = tmp_path / "out"
    words = ["bench", "policy", "train", str(folder), "--out", str(out)]
    done = CliRunner().invoke(cli.app, [*words, "--states", "1", "--trials", "1"])
    assert done.exit_code == 0, done.output
    assert "On pools that it never saw, learned is ahead of random on" in done.output
    family = Learned(weights=str(out / "learned.safetensors"))
    assert family.network.weights["last.weight"].shape == (1, 16)
    facts = facts_of(out / "learned.safetensors")
    assert facts["command"] == "tailor bench policy train mine --states 1 --trials 1 --seed 0"
    assert facts["pools"].endswith("overlapping-regions, mine")
    report = (out / "report.md").read_text()
    for name in ("digits", "digits-multilabel", "skewed-clusters", "mine"):
        assert f"| {name} |" in report
        assert (out / f"without-{name}.safetensors").exists()


def test_both_kinds_of_digits_are_left_out_together():
    assert make._same_pictures("digits", "digits-multilabel")
    assert not make._same_pictures("digits", "skewed-clusters")


def test_a_folder_of_features_and_one_that_has_a_built_in_name(tmp_path):
    folder = tmp_path / "digits"
    folder.mkdir()
    for split in ("train", "test"):
        x = np.arange(40, dtype=np.float32).reshape(20, 2)
        y = np.tile([[0, 1], [1, 1]], (10, 1))
        np.savez(folder / f"{split}.npz", x=x, y=y, classes=np.array(["a", "b"]))
    pool = read_pool(folder)
    assert isinstance(pool.task, MultiLabel)
    assert pool.features.mean(0) == pytest.approx([0, 0], abs=1e-6)
    assert pool.budget == 60
    with pytest.raises(InputError, match="two pools are named 'digits'"):
        make.make_policy([folder], tmp_path, states=1, trials=0, seed=0, say=print)
