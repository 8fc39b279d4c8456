"""Other packages beside TAILOR, on the digits: a trial each, its rows and its table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import parts
import pytest

from tailor.errors import InputError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """The scripts import each other by name, as they do when one is run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "peers_labels.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


SMALL = ("--batch", "12", "--rounds", "2", "--trials", "1")


def test_a_finished_trial_is_not_run_again(tmp_path):
    rows = tmp_path / "rows.jsonl"
    first = run_script(str(rows), *SMALL, "--peers")
    assert first.returncode == 0, first.stderr
    by_choice, at_random = read(rows)
    assert (by_choice["random"], at_random["random"]) == (False, True)
    for row in (by_choice, at_random):
        assert row["labels"] == [12, 24]
        assert sum(row["counts"]) == 24
        # Here the package's classifier is the probe.
        assert row["own"] == row["probe"]
        assert 0.1 < row["own"][-1] <= 1
    written = rows.read_bytes()
    again = run_script(str(rows), *SMALL, "--peers")
    assert (again.returncode, again.stderr) == (0, "")
    assert rows.read_bytes() == written
    assert again.stdout == first.stdout


def check_peer(tmp_path: Path, peer: str) -> None:
    from peers_labels import PeerProcess

    from tailor_experiments.comparison.data import load_data

    data = load_data({"name": "digits", "options": {"classes": 10}})
    process = PeerProcess(sys.executable, tmp_path, data)
    chosen_scores, chosen = process.run(peer, 12, 2, seed=0, at_random=False)
    random_scores, at_random = process.run(peer, 12, 2, seed=0, at_random=True)
    assert len(np.unique(chosen)) == len(np.unique(at_random)) == 24
    # Both begin with the same labels and the same classifier, and part in the second round.
    assert chosen[:12].tolist() == at_random[:12].tolist()
    assert chosen_scores[0] == random_scores[0]
    assert chosen[12:].tolist() != at_random[12:].tolist()
    assert min(chosen_scores + random_scores) > 0.2


@parts.needs("scikit-activeml")
def test_scikit_activeml(tmp_path):
    check_peer(tmp_path, "scikit-activeml")


def test_what_cannot_be_run_says_what_to_do(tmp_path, monkeypatch):
    import peers_labels

    installed = {"scikit-activeml": None, "small-text": "1.4.1", "ASReview": "3.0.8"}
    monkeypatch.setattr(peers_labels, "_call", lambda python, arguments: json.dumps(installed))
    with pytest.raises(InputError, match=r"pip install scikit-activeml.*--python"):
        peers_labels.check_peers("python", ["scikit-activeml"], 10)
    with pytest.raises(InputError, match=r"10 classes: give --classes 2"):
        peers_labels.check_peers("python", ["ASReview"], 10)
    assert peers_labels.check_peers("python", ["ASReview"], 2) == {"ASReview": "3.0.8"}
    too_many = run_script(str(tmp_path / "rows.jsonl"), "--batch", "1000", "--peers")
    assert too_many.returncode == 1
    assert "13000 labels, and the pool has 1348" in too_many.stderr


class NearestCentre:
    """In the place of ASReview's parts: relevant is what lies nearer to the relevant's mean."""

    def __init__(self):
        self.trained_on = []
        self.classifier = self

    def fit(self, features, is_relevant):
        self.trained_on.append(len(features))
        self.means = [features[is_relevant == k].mean(0) for k in (0, 1)]

    def scores(self, features):
        irrelevant, relevant = (np.linalg.norm(features - mean, axis=1) for mean in self.means)
        return irrelevant - relevant

    def rank(self, features):
        return np.argsort(-self.scores(features), kind="stable")

    def predict(self, features):
        return (self.scores(features) > 0).astype(int)


def screening_trial():
    from peer_learners import Trial

    # Class 0 is relevant: three of twelve, in a direction of their own.
    answers = np.array([1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1])
    pool = np.eye(2, dtype=np.float32)[answers] + np.linspace(0, 0.1, 12, dtype=np.float32)[:, None]
    order = np.arange(12)
    return Trial(pool, pool, answers, order, classes=2, batch=4, rounds=2, seed=0)


def test_asreview_reads_in_order_until_both_classes_are_found_then_the_likeliest_first(monkeypatch):
    from peer_learners import ASReview, run_trial

    monkeypatch.setattr(ASReview, "default_cycle", lambda self: NearestCentre())
    trial = screening_trial()
    peer = ASReview(trial)
    (first, nothing_found), (labelled, predicted) = run_trial(peer, trial)
    assert first.tolist() == [0, 1, 2, 3]
    assert nothing_found.tolist() == [1] * 12
    # The fifth is the first that is relevant; from there on the model puts relevant ones first.
    assert sorted(labelled.tolist()) == [0, 1, 2, 3, 4, 6, 9, labelled[-1]]
    assert peer.cycle.trained_on == [5, 6, 7, 8]
    assert predicted.tolist() == trial.answers.tolist()


def test_at_random_no_peer_is_asked(monkeypatch):
    from peer_learners import ASReview, run_trial

    monkeypatch.setattr(ASReview, "default_cycle", lambda self: NearestCentre())
    trial = screening_trial()
    peer = ASReview(trial)
    *_, (labelled, _) = run_trial(peer, trial, at_random=True)
    assert labelled.tolist() == list(range(8))
    assert peer.cycle.trained_on == [8]


def made_up_row(package: str, is_random: bool, seed: int, own: list[float]) -> dict:
    return {
        "data": "made up",
        "classes": 3,
        "pool": 5000,
        "batch": 10,
        "rounds": 3,
        "package": package,
        "version": "1",
        "random": is_random,
        "seed": seed,
        "labels": [10, 20, 30],
        "own": own,
        "probe": own if package == "TAILOR" or not is_random else None,
        "counts": [3, 7, 20],
    }


def test_the_table_compares_with_the_end_of_random_labels():
    from peers_labels_table import tables

    rows = [
        made_up_row("TAILOR", False, 0, [0.5, 0.7, 0.9]),
        made_up_row("TAILOR", False, 1, [0.7, 0.7, 0.9]),
        made_up_row("TAILOR", True, 0, [0.2, 0.4, 0.6]),
        made_up_row("TAILOR", True, 1, [0.2, 0.4, 0.6]),
        made_up_row("peer", False, 0, [0.2, 0.3, 0.5]),
        made_up_row("peer", True, 0, [0.2, 0.3, 0.4]),
    ]
    (text,) = tables(rows)
    title, _, _, _, chosen, _, peer, peer_random = text.splitlines()
    assert title == "made up, 3 classes, a pool of 5,000, 3 rounds of 10 labels:"
    # 10 and 20 labels: their mean, and t(0.975, 1) times the standard error of two.
    half_cells = "0.725 ± 0.318 | 0.900 ± 0.000 | 15 ± 64 (0.600)"
    assert chosen == f"| TAILOR 1 | its choice | {half_cells} | {half_cells} |"
    assert peer == (
        "| peer 1 | its choice | 0.325 | 0.500 | 30 (0.400) | 0.325 | 0.500 | "
        "> 30 in 1 of 1 (0.600) |"
    )
    assert peer_random == "| peer 1 | random | 0.300 | 0.400 | 30 (0.400) |  |  |  |"
    (fixed,) = tables(rows, level=0.7)
    assert "labels to 0.7" in fixed
    assert "> 30 in 2 of 2 (0.700)" in fixed.splitlines()[5]


def test_the_published_tables_are_those_of_the_rows():
    from peers_labels_table import tables

    page = (BENCHMARKS / "README.md").read_text()
    published = list(tables(read(BENCHMARKS / "results" / "peers_labels.jsonl")))
    assert published
    for table in published:
        assert table in page
