"""How many labels users of other packages for active learning need, beside TAILOR's `auto`.

    python benchmarks/peers_labels.py ROWS.jsonl [--features FOLDER] [--classes K] [--batch B]
        [--rounds R] [--trials T] [--peers NAME ...] [--python PYTHON] [--level ACCURACY]

All have the same pool, features and budget: R rounds of B labels, the first of which is the start.
FOLDER holds train.npz and test.npz as benchmarks/embed.py writes them; without one it is
scikit-learn's digits. With --classes 2 it is class 0 against the rest, and ASReview, which knows
binary tasks alone, runs too.

TAILOR is what a new run is begun with: a start that covers the pool, `strategies="auto"`,
`selector="auto"`, `cover=True`, and a probe with `prior_correction="auto"`. The peers, their
strategies and their classifiers: benchmarks/peer_learners.py. Beside each package stand random
labels with the same classifier.

After every round two are judged by balanced accuracy on the test set: the package's own classifier,
and TAILOR's probe trained on the labels that the package chose. The one is what its user has, the
other tells the choice of labels from the choice of model.

ROWS gets a line for each trial as it is finished; what is there is not run again, so an
interrupted run goes on, and --trials 0 prints the tables of all its rows and runs nothing. PYTHON
is an interpreter with the peers, by default the one that runs this. ASReview wants a pandas older
than 3, so it has an environment of its own:

    python3 -m venv peers && peers/bin/pip install scikit-activeml small-text asreview
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from peer_learners import PEERS, RESULT
from peers_labels_table import tables

import tailor
from tailor import Learner
from tailor.errors import InputError, TailorError
from tailor.models import make_model
from tailor.selection.coverage_start import coverage_start
from tailor_experiments.comparison.data import load_data
from tailor_experiments.comparison.trial_data import Material
from tailor_experiments.datasets.base import Dataset, one_hot
from tailor_experiments.metrics import balanced_accuracy

TAILOR = "TAILOR"
PEER_SCRIPT = Path(__file__).with_name("peer_learners.py")
#: what makes a row the trial that it is
KEYS = ("data", "classes", "batch", "rounds", "package", "random", "seed")


class ProbeJudge:
    """TAILOR's probe, trained on some labels of a pool and judged on the test set."""

    def __init__(self, data: Dataset) -> None:
        options = {"prior_correction": "auto", "device": "cpu"}
        assert data.test_pool is not None
        model = make_model("probe", data.task, data.pool, **options)
        test_model = make_model("probe", data.task, data.test_pool, **options)
        self.data = data
        self.model = model
        self.material = Material(data, model, test_model)

    def fit(self, labelled: np.ndarray, seed: int) -> float:
        """The balanced accuracy of a probe trained on positions (n,)."""
        assert self.data.test_labels is not None
        assert self.material.test_model is not None
        # In the order in which a learner lists them: the same labels make the same model.
        positions = np.sort(labelled)
        self.model.fit(positions, self.data.labels[positions], seed=seed)
        self.material.hand_over()
        test_positions = np.arange(len(self.data.test_labels))
        probs = self.material.test_model.predict(test_positions).probs
        return balanced_accuracy(self.data.test_labels, probs)


def run_tailor(
    judge: ProbeJudge,
    batch: int,
    rounds: int,
    seed: int,
) -> tuple[list[float], np.ndarray]:
    """(balanced accuracy after each round, positions labelled)"""
    data = judge.data
    classes = data.labels.argmax(1)
    pool_positions = np.arange(len(classes))
    learner = Learner(
        data.task,
        pool=len(classes),
        strategies="auto",
        selector="auto",
        cover=True,
        batch=batch,
        rounds=rounds,
        seed=seed,
    )
    asked = coverage_start(
        judge.model.first_features,
        pool_positions,
        batch,
        around=np.empty(0, np.int64),
        seed=seed,
    )
    scores = []
    for _ in range(rounds):
        learner.tell(asked, classes[asked])
        scores.append(judge.fit(learner.labelled, seed))
        if len(scores) < rounds:
            prediction = judge.model.predict(pool_positions)
            asked = learner.ask(prediction.probs, features=prediction.features).indices
    return scores, learner.labelled


def random_order(size: int, seed: int) -> np.ndarray:
    """(size,) positions: where every peer's start comes from, and all random labels."""
    return np.random.default_rng(seed).permutation(size)


def probe_scores(judge: ProbeJudge, labelled: np.ndarray, batch: int, seed: int) -> list[float]:
    """Of probes on the first B, 2B, ... of positions (n,)."""
    ends = range(batch, len(labelled) + 1, batch)
    return [judge.fit(labelled[:end], seed) for end in ends]


class PeerProcess:
    """Peers in a process of their own, which reads the pool from a folder.

    python  the interpreter that has them
    """

    def __init__(self, python: str, folder: Path, data: Dataset) -> None:
        assert data.test_pool is not None
        assert data.test_labels is not None
        self.python = python
        self.folder = folder
        self.test_labels = data.test_labels
        np.save(folder / "pool.npy", _features(data.pool))
        np.save(folder / "test.npy", _features(data.test_pool))
        np.save(folder / "answers.npy", data.labels.argmax(1))

    def run(
        self,
        peer: str,
        batch: int,
        rounds: int,
        seed: int,
        *,
        at_random: bool,
    ) -> tuple[list[float], np.ndarray]:
        """(balanced accuracy of the peer's classifier after each round, positions in sequence)"""
        answers = np.load(self.folder / "answers.npy")
        np.save(self.folder / "order.npy", random_order(len(answers), seed))
        arguments = ["run", str(self.folder), peer, f"--batch={batch}", f"--rounds={rounds}"]
        arguments.append(f"--seed={seed}")
        if at_random:
            arguments.append("--random")
        _call(self.python, arguments)
        classes = self.test_labels.shape[1]
        with np.load(self.folder / RESULT) as result:
            labelled = result["labelled"]
            predictions = result["predicted"]
        scores = [balanced_accuracy(self.test_labels, one_hot(p, classes)) for p in predictions]
        return scores, labelled


def _features(pool: Any) -> np.ndarray:
    return np.stack(pool.read(range(len(pool)))).astype(np.float32)


def _call(python: str, arguments: list[str]) -> str:
    """What peer_learners.py prints; TailorError with its last words where it fails."""
    try:
        done = subprocess.run(
            [python, str(PEER_SCRIPT), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise InputError(f"--python {python} can't be run: {error}") from error
    if done.returncode != 0:
        last_words = done.stderr.strip()[-2000:]
        raise TailorError(f"{python} peer_learners.py {' '.join(arguments)} failed:\n{last_words}")
    return done.stdout


def check_peers(python: str, wanted: list[str], classes: int) -> dict[str, str]:
    """The versions of the peers that are wanted. Raises InputError where one can't be run."""
    installed = json.loads(_call(python, ["versions"]))
    for name in wanted:
        if installed[name] is None:
            raise InputError(
                f"{name} is not installed for {python}: make an environment with `python3 -m venv "
                f"peers && peers/bin/pip install {PEERS[name].package}` and give its interpreter, "
                "--python peers/bin/python, or leave the package out with --peers"
            )
    if "ASReview" in wanted and classes != 2:
        raise InputError(
            f"ASReview is for binary tasks and this one has {classes} classes: give --classes 2, "
            "or leave it out with --peers"
        )
    return {name: installed[name] for name in wanted}


def load(options: argparse.Namespace) -> Dataset:
    chosen: dict[str, Any] = {}
    if options.classes is not None:
        chosen["classes"] = options.classes
    if options.features is None:
        return load_data({"name": "digits", "options": {"classes": 10, **chosen}})
    data = load_data({"name": "features", "path": str(options.features), "options": chosen})
    if data.task.kind != "multi-class":
        raise InputError(
            f"{options.features} is multi-label: the peers run on one class an example"
        )
    return data


def trials(data: Dataset, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The trials that are wanted, in sequence, as the beginnings of their rows."""
    classes = data.task.size
    wanted = options.peers
    if wanted is None:
        wanted = [name for name in PEERS if name != "ASReview" or classes == 2]
    versions = check_peers(options.python, wanted, classes) if wanted else {}
    versions[TAILOR] = tailor.__version__
    for seed in range(options.trials):
        for package in (TAILOR, *wanted):
            for is_random in (False, True):
                yield {
                    "data": data.name,
                    "classes": classes,
                    "pool": len(data.labels),
                    "batch": options.batch,
                    "rounds": options.rounds,
                    "package": package,
                    "version": versions[package],
                    "random": is_random,
                    "seed": seed,
                }


def run_trial(trial: dict[str, Any], judge: ProbeJudge, peers: PeerProcess) -> dict[str, Any]:
    """The row of a finished trial: `own` and `probe`, one score a round; `counts`, the labels of
    each class in the end.

    Peers' random labels are TAILOR's random labels, so the probe is not trained on them again.
    """
    batch = trial["batch"]
    rounds = trial["rounds"]
    seed = trial["seed"]
    started = time.perf_counter()
    probe = None
    if trial["package"] != TAILOR:
        own, labelled = peers.run(
            trial["package"],
            batch,
            rounds,
            seed,
            at_random=trial["random"],
        )
        if not trial["random"]:
            probe = probe_scores(judge, labelled, batch, seed)
    elif trial["random"]:
        order = random_order(len(judge.data.labels), seed)
        labelled = order[: batch * rounds]
        own = probe = probe_scores(judge, labelled, batch, seed)
    else:
        own, labelled = run_tailor(judge, batch, rounds, seed)
        probe = own
    return {
        **trial,
        "labels": [batch * (number + 1) for number in range(rounds)],
        "own": _rounded(own),
        "probe": None if probe is None else _rounded(probe),
        "counts": judge.data.labels[labelled].sum(0).tolist(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _rounded(scores: list[float]) -> list[float]:
    return [round(score, 5) for score in scores]


def read_rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(options: argparse.Namespace) -> None:
    """Run what is missing, and add its rows to the file."""
    data = load(options)
    total = options.batch * options.rounds
    if not 0 < total <= len(data.labels):
        raise InputError(
            f"{options.rounds} rounds of {options.batch} are {total} labels, and the pool has "
            f"{len(data.labels)}: take fewer, at least one"
        )
    finished = {tuple(row[key] for key in KEYS) for row in read_rows(options.rows)}
    judge = ProbeJudge(data)
    with tempfile.TemporaryDirectory(prefix="tailor-peers-") as folder:
        peers = PeerProcess(options.python, Path(folder), data)
        for trial in trials(data, options):
            if tuple(trial[key] for key in KEYS) in finished:
                continue
            row = run_trial(trial, judge, peers)
            with options.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            way = "random" if row["random"] else "its choice"
            print(
                f"{row['package']}, {way}, seed {row['seed']}: {row['own'][-1]:.3f} after "
                f"{total} labels, {row['seconds']} s",
                file=sys.stderr,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=13)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--peers", nargs="*", choices=PEERS)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--level", type=float)
    options = parser.parse_args()
    try:
        if options.trials > 0:
            run(options)
    except TailorError as error:
        sys.exit(f"error: {error}")
    for table in tables(read_rows(options.rows), options.level):
        print(table, end="\n\n")


if __name__ == "__main__":
    main()
