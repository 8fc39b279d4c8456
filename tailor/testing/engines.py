"""The contract of an engine: the picks of a round over shards are those of the same round in
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tailor import strategies
from tailor.compute import Engine, Predictions, Sharded
from tailor.selection.learner import Learner
from tailor.selection.pool_view import PoolView
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor.task import Task
from tailor.testing.simulated_pools import SimulatedPool, make_view


def families_for(task: Task) -> list[str]:
    """All registered families that have arms for this task."""
    return [
        name for name in strategies.registry if task.kind in strategies.registry.find(name).tasks
    ]


def in_shards(
    engine: Engine, pool: SimulatedPool, view: PoolView, folder: Path, shard: int, seed: int
) -> PoolView:
    """The round of `view`, a view of `pool`, over shards of so many rows in a folder."""
    dtype = str(view.probs.numpy().dtype)

    def write(name: str, probs: Any, features: Any = None, dtype: str = "float64") -> Predictions:
        width = 0 if features is None else features.shape[1]
        made = Predictions(str(folder / name), len(pool), pool.task.size, width, dtype, shard)
        return made.write_all(probs, features)

    def finetune(epochs: int) -> Predictions:
        targets = view.rows(slice(None)).clone()
        targets[view.labelled] = targets.new_tensor(view.labels)
        return write("tuned", pool.finetune(targets, epochs))

    sharded = Sharded(
        write(
            "predictions",
            view.probs.numpy(),
            None if view.features is None else view.features.numpy(),
            dtype,
        ),
        engine,
        finetune,
        lambda: [write(f"pass-{n}", probs) for n, probs in enumerate(pool.dropout())],
    )
    return sharded.round_view(
        view.task,
        labelled=view.labelled,
        labels=view.labels,
        free=view.free,
        pending=view.pending,
        seed=seed,
    )


class FewRows(Predictions):
    """Predictions of which nobody may take more than some rows at once: who needs all must ask the
    shards.
    """

    most: ClassVar[int] = 30

    def take(self, name: str, positions: np.ndarray | slice) -> np.ndarray:
        found = super().take(name, positions)
        if len(found) > self.most:
            raise AssertionError(
                f"{len(found)} rows of {name} were taken at once, of a pool of {self.rows}"
            )
        return found


def check_same_learning(
    engine: Engine,
    pool: SimulatedPool,
    selector: str,
    folder: Path,
    *,
    shard: int = 16,
    rounds: int = 3,
    batch: int = 6,
) -> None:
    """Raises AssertionError where a selector that learns from a loop over shards differs, in any
    bit, from one that learns in memory, or where this process takes all of the pool's rows to tell
    it how the model fares.
    """
    probs = pool.probs.astype(np.float32)
    made = FewRows(
        str(folder / "learning"), len(pool), pool.task.size, 0, "float32", shard
    ).write_all(probs)
    families = ["random", "galaxy", "most-likely-positive"]
    learners = [
        Learner(pool.task, len(pool), strategies=families, selector=selector, batch=batch)
        for _ in range(2)
    ]
    for _ in range(rounds):
        asked = [
            learner.ask(given).indices
            for learner, given in zip(learners, (probs, Sharded(made, engine)))
        ]
        plain, ours = (learner.selector.state() for learner in learners)
        for name, wanted in plain.items():
            if not np.array_equal(ours[name], wanted):
                raise AssertionError(
                    f"{engine.name} engine: {selector}'s {name} is {ours[name]}, in memory {wanted}"
                )
        if asked[0].tolist() != asked[1].tolist():
            raise AssertionError(
                f"{engine.name} engine: {selector} asked for {asked[1]}, in memory {asked[0]}"
            )
        for learner in learners:
            learner.skip(asked[0][:1])
            learner.tell(asked[0][1:], pool.truth[asked[0][1:]])


def check_same_picks(
    engine: Engine,
    pool: SimulatedPool,
    families: Sequence[Any],
    folder: Path,
    *,
    seed: int,
    shard: int = 7,
    **state: Any,
) -> None:
    """Raises AssertionError where a round to the last free example, its arms in random turns,
    differs.

    state  as make_view takes it: the shares of the pool that are labelled, pending and skipped,
           dtype, ...
    """
    views = make_view(pool, seed, **state), make_view(pool, seed, **state)
    arms = make_arms(families, pool.task)
    plan = np.random.default_rng((seed, 3)).integers(0, len(arms), views[0].ledger.left)
    plain = Round(views[0], arms, plan, seed).batch()
    ours = Round(in_shards(engine, pool, views[1], folder, shard, seed), arms, plan, seed).batch()
    for slot in range(len(plain)):
        wanted = (int(plain.indices[slot]), plain.arms[slot])
        got = (int(ours.indices[slot]), ours.arms[slot])
        if wanted != got:
            raise AssertionError(
                f"{engine.name} engine, slot {slot}: {got[0]} by {ours.arm_names[slot]}, in "
                f"memory {wanted[0]} by "
                f"{plain.arm_names[slot]}"
            )
