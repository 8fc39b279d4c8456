"""How far a run has come, from its state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.run.state import RunState
from tailor.run.stopping import RunProgress, StoppingRule, why_stop


def progress_of(run_state: RunState) -> RunProgress:
    """For stopping rules."""
    accuracy = []
    lower = []
    for record in run_state.rounds:
        if record.estimate is None:
            continue
        accuracy.append(record.estimate.accuracy)
        lower.append(record.estimate.lower)
    counts = run_state.label_table.total.by_class
    return RunProgress(
        labels=run_state.answered(),
        counts=counts.astype(np.float64),
        classes=run_state.task.classes,
        accuracy=tuple(accuracy),
        lower=tuple(lower),
    )


def reason_to_stop(run_state: RunState, rules: Sequence[StoppingRule]) -> str | None:
    """The first rule that is met, in words; goals that were set while labelling take the place of
    rules of their kind.
    """
    active = run_state.goals.in_place_of(rules)
    return why_stop(active, progress_of(run_state))
