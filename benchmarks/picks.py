"""What is picked, recorded, so that a change that should change nothing can be held against it.

    python benchmarks/picks.py record picks.json
    python benchmarks/picks.py compare picks.json

Every family with every selector, for both kinds of task, in memory and over shards; and a durable
session whose answers come late, twice, corrected and withdrawn. Compare exits with 1 and names the
first differences. The same machine and packages give the same picks; on another kind of processor
near-ties may fall differently.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tailor import Learner, MultiClass, MultiLabel, bandits, strategies
from tailor.compute import LocalEngine, Predictions, Sharded
from tailor.models import make_model
from tailor.pools.arrays import Arrays
from tailor.run.session import SKIP, Session
from tailor.run.settings import Settings
from tailor.storage import SqliteStore
from tailor.task import Task
from tailor.testing.simulated_pools import SimulatedPool, make_pool

SIZE = 120
CLASSES = 3
BATCH = 10
ROUNDS = 3
SEEDS = (0, 1)


def selectors() -> list[str]:
    return [name for name in bandits.registry if name != "fixed"]


def loop_picks(
    pool: SimulatedPool, family: str, selector: str, seed: int, folder: Path | None
) -> list[list[int]]:
    """The positions asked for in each round; over shards in `folder`, or in memory."""
    learner = Learner(
        pool.task,
        SIZE,
        strategies=sorted({family, "random"}),
        selector=selector,
        batch=BATCH,
        seed=seed,
    )
    start = np.arange(12)
    learner.tell(start, pool.truth[start])
    asked = []
    for number in range(ROUNDS):
        # A model that gets surer of the truth from round to round.
        probs = pool.probs + 0.1 * number * pool.truth
        probs = (
            probs / probs.sum(1, keepdims=True)
            if pool.task.kind == "multi-class"
            else np.minimum(probs, 1)
        )
        probs = probs.astype(np.float32)
        if folder is None:
            batch = learner.ask(
                probs,
                pool.features.astype(np.float32),
                finetune=pool.finetune,
                dropout=pool.dropout,
            )
        else:
            batch = learner.ask(sharded(pool, probs, folder))
        asked.append(batch.indices.tolist())
        learner.tell(batch.indices, pool.truth[batch.indices])
        learner.tell(batch.indices[:1], pool.truth[batch.indices[:1] - 1])  # a correction
    return asked


def sharded(pool: SimulatedPool, probs: np.ndarray, folder: Path) -> Sharded:
    def write(name: str, probs: np.ndarray, features: np.ndarray | None = None) -> Predictions:
        width = 0 if features is None else features.shape[1]
        made = Predictions(
            str(folder / name),
            SIZE,
            CLASSES,
            width,
            "float32",
            shard=32,
        )
        return made.write_all(probs, features)

    def dropout() -> list[Predictions]:
        return [write(f"pass-{number}", said) for number, said in enumerate(pool.dropout())]

    features = pool.features.astype(np.float32)
    return Sharded(
        write("said", probs, features),
        LocalEngine(),
        lambda epochs: write("tuned", probs),
        dropout,
    )


def session_picks(task: Task, seed: int, folder: Path) -> list[list[str]]:
    """The ids asked for, with answers that are late, partial, repeated, corrected, skipped and
    withdrawn.
    """
    pool = make_pool(task, SIZE, seed, dims=5)
    vectors = Arrays(pool.features.astype(np.float32))
    settings = Settings(
        task.kind,
        task.classes,
        batch=BATCH,
        holdout=0.2,
        seed=seed,
    )
    model = make_model("sklearn", task, vectors)
    several = {
        id: [c for c, y in zip(task.classes, row) if y] for id, row in zip(vectors.ids, pool.truth)
    }
    answers = (
        several
        if task.kind == "multi-label"
        else {id: classes[0] for id, classes in several.items()}
    )
    session = Session(
        SqliteStore(folder / f"{task.kind}-{seed}.db"),
        vectors,
        model,
        settings,
    )
    asked = []
    late = []
    for _ in range(ROUNDS + 2):
        ids = [question.id for question in session.ask()]
        asked.append(ids)
        session.tell({id: answers[id] for id in late})
        late = ids[-2:]
        session.tell({ids[0]: SKIP} | {id: answers[id] for id in ids[1:-2]})
        session.tell({ids[1]: answers[ids[2]]})
        session.withdraw([ids[3]])
        session.tell({ids[3]: answers[ids[3]]})
    return asked


def record() -> dict[str, list]:
    picks: dict[str, list] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for task in (MultiClass(CLASSES), MultiLabel(CLASSES)):
            families = [
                f for f in strategies.registry if task.kind in strategies.registry.find(f).tasks
            ]
            for seed in SEEDS:
                pool = make_pool(task, SIZE, seed, dims=5)
                for family in families:
                    for selector in selectors():
                        key = f"{task.kind} {family} {selector} {seed}"
                        picks[f"{key} memory"] = loop_picks(pool, family, selector, seed, None)
                        picks[f"{key} shards"] = loop_picks(pool, family, selector, seed, folder)
                picks[f"{task.kind} session {seed}"] = session_picks(task, seed, folder)
    return picks


def main() -> int:
    mode, path = sys.argv[1:]
    picks = record()
    if mode == "record":
        Path(path).write_text(json.dumps(picks, indent=0) + "\n")
        print(f"{len(picks)} series of picks in {path}")
        return 0
    before = json.loads(Path(path).read_text())
    different = [key for key in before if before[key] != picks.get(key)]
    new = picks.keys() - before.keys()
    same = len(before) - len(different)
    print(f"{same} of {len(before)} series are the same; {len(new)} are of families or selectors")
    print("that were not there then")
    for key in sorted(different)[:10]:
        print(f"{key}: {before.get(key)} -> {picks.get(key)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
