"""How today's model does, as ALBL, COMB and DEAL want to know it."""

from __future__ import annotations

import numpy as np

from tailor.bandits import Fit
from tailor.selection.label_table import LabelTable
from tailor.selection.pool_view import CHUNK, PoolView
from tailor.task import MultiClass


def measure_fit(view: PoolView, label_table: LabelTable, reward: float | None = None) -> Fit:
    """What the model has right of the answered picks, and what it predicts for the rest.

    view    today's predictions
    reward  the user's own, in [0, 1], which the selector takes in place of its own
    """
    picks = label_table.picks
    picked = picks.credited(label_table.labelled)
    correct = np.empty(len(picked))
    for start in range(0, len(picked), CHUNK):
        stop = start + CHUNK
        part = slice(start, stop)
        positions = picked[part]
        correct[part] = _share_right(view, label_table, positions)
    unlabelled = label_table.unlabelled
    # Where everything is labelled there is nothing to count, and nothing to divide by.
    unlabelled_count = max(1, int(unlabelled.sum()))
    predicted_counts = view.count_predicted(unlabelled)
    rates = predicted_counts / unlabelled_count
    chances = picks.chance[picked]
    return Fit(
        correct,
        chances,
        rates,
        label_table.pool,
        reward,
    )


def _share_right(view: PoolView, label_table: LabelTable, positions: np.ndarray) -> np.ndarray:
    """(n,) float64: the share of its classes that the model has right, of answered examples."""
    on_device = view.to_device(positions)
    rows = view.rows(on_device)
    predicted = view.task.predicted(rows)
    labels = label_table.labels_of(positions)
    has_class = labels > 0.5
    is_right = predicted.cpu().numpy() == has_class
    # A multi-class prediction is right as a whole or not at all.
    if isinstance(view.task, MultiClass):
        share = is_right.all(1)
    else:
        share = is_right.mean(1)
    return share.astype(np.float64)
