"""The contract of an engine: the picks of a round over shards are those of the same round in
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tailor import strategies
from tailor.compute import (
    Engine,
    Predictions,
    Sharded,
    ShardedView,
)
from tailor.selection.array_view import ArrayView
from tailor.selection.learner import Learner
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor.task import Task
from tailor.testing.simulated_pools import SimulatedPool, make_view


def families_for(task: Task) -> list[str]:
    """All registered families that have arms for this task."""
    names = []
    for name in strategies.registry:
        family = strategies.registry.find(name)
        if task.kind in family.tasks:
            names.append(name)
    return names


def in_shards(
    engine: Engine,
    pool: SimulatedPool,
    view: ArrayView,
    folder: Path,
    shard: int,
    seed: int,
) -> ShardedView:
    """The round of `view`, a view of `pool`, over shards of so many rows in a folder."""

    def write(
        name: str,
        probs: Any,
        features: Any = None,
        dtype: str = "float64",
    ) -> Predictions:
        width = 0
        if features is not None:
            width = features.shape[1]
        predictions = Predictions(
            str(folder / name),
            len(pool),
            pool.task.size,
            width,
            dtype,
            shard,
        )
        return predictions.write_all(probs, features)

    def finetune(epochs: int) -> Predictions:
        # As the view in memory teaches: what is labelled, and the model's own word otherwise.
        targets = view.rows(slice(None)).clone()
        targets[view.labelled] = targets.new_tensor(view.labels)
        tuned = pool.finetune(targets, epochs)
        return write("tuned", tuned)

    def dropout() -> list[Predictions]:
        passes = []
        for number, probs in enumerate(pool.dropout()):
            written = write(f"pass-{number}", probs)
            passes.append(written)
        return passes

    probs = view.probs.numpy()
    features = None
    if view.features is not None:
        features = view.features.numpy()
    predictions = write(
        "predictions",
        probs,
        features,
        str(probs.dtype),
    )
    sharded = Sharded(
        predictions,
        engine,
        finetune,
        dropout,
        view.head,
        pool.boundary_distances,
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
        rows = super().take(name, positions)
        if len(rows) > self.most:
            raise AssertionError(
                f"{len(rows)} rows of {name} were taken at once, of a pool of {self.rows}"
            )
        return rows


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
    # Rounded once, so that both sides start from the same bits.
    probs = pool.probs.astype(np.float32)
    predictions = FewRows(
        str(folder / "learning"),
        len(pool),
        pool.task.size,
        0,
        "float32",
        shard,
    ).write_all(probs)
    sharded = Sharded(predictions, engine)

    def make_learner() -> Learner:
        return Learner(
            pool.task,
            len(pool),
            strategies=["random", "galaxy", "most-likely-positive"],
            selector=selector,
            batch=batch,
        )

    in_memory = make_learner()
    over_shards = make_learner()
    for _ in range(rounds):
        expected = in_memory.ask(probs).indices
        asked = over_shards.ask(sharded).indices
        # The state first: where it differs, it says why the picks do.
        _require_same_state(
            engine,
            over_shards,
            in_memory,
            selector,
        )
        if expected.tolist() != asked.tolist():
            raise AssertionError(
                f"{engine.name} engine: {selector} asked for {asked}, in memory {expected}"
            )
        # One is skipped each time: selectors must not credit it to anybody.
        skipped = expected[:1]
        answered = expected[1:]
        answers = pool.truth[answered]
        for learner in (in_memory, over_shards):
            learner.skip(skipped)
            learner.tell(answered, answers)


def _require_same_state(
    engine: Engine,
    over_shards: Learner,
    in_memory: Learner,
    selector: str,
) -> None:
    state = over_shards.selector.state()
    expected_state = in_memory.selector.state()
    for name, expected in expected_state.items():
        if not np.array_equal(state[name], expected):
            raise AssertionError(
                f"{engine.name} engine: {selector}'s {name} is {state[name]}, in memory {expected}"
            )


def check_same_picks(
    engine: Engine,
    pool: SimulatedPool,
    families: Sequence[Any],
    folder: Path,
    *,
    seed: int,
    shard: int = 7,
    labelled: float = 0.3,
    pending: float = 0.0,
    skipped: float = 0.0,
    never: int | None = None,
    dtype: Any = np.float64,
    cover: bool = False,
    head: Any = None,
) -> None:
    """Raises AssertionError where a round to the last free example, its arms in random turns,
    differs.

    shard     rows of a shard
    cover     whether what the arms propose is covered
    labelled, pending, skipped, never, dtype, head  as make_view takes them
    """

    def make() -> ArrayView:
        return make_view(
            pool,
            seed,
            labelled=labelled,
            pending=pending,
            skipped=skipped,
            never=never,
            dtype=dtype,
            head=head,
        )

    # A view each: what a round takes is entered in its view's ledger.
    view = make()
    sharded_view = in_shards(
        engine,
        pool,
        make(),
        folder,
        shard,
        seed,
    )
    arms = make_arms(families, pool.task)
    # A slot for every free example, so that arms may run dry and others inherit their slots.
    plan_rng = np.random.default_rng((seed, 3))
    plan = plan_rng.integers(0, len(arms), view.ledger.left)
    in_memory = Round(
        view,
        arms,
        plan,
        seed,
        cover=cover,
    )
    expected = in_memory.batch()
    over_shards = Round(
        sharded_view,
        arms,
        plan,
        seed,
        cover=cover,
    )
    batch = over_shards.batch()
    for slot in range(len(expected)):
        wanted = (int(expected.indices[slot]), expected.arms[slot])
        picked = (int(batch.indices[slot]), batch.arms[slot])
        if wanted != picked:
            raise AssertionError(
                f"{engine.name} engine, slot {slot}: {picked[0]} by {batch.arm_names[slot]}, in "
                f"memory {wanted[0]} by {expected.arm_names[slot]}"
            )
