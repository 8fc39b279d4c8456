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
    picked = label_table.picks.credited(label_table.labelled)
    unlabelled = label_table.unlabelled
    correct = np.empty(len(picked))
    for start in range(0, len(picked), CHUNK):
        part = slice(start, start + CHUNK)
        correct[part] = _share_right(view, label_table, picked[part])
    rates = view.count_predicted(unlabelled) / max(1, int(unlabelled.sum()))
    return Fit(correct, label_table.picks.chance[picked], rates, label_table.pool, reward)


def _share_right(view: PoolView, label_table: LabelTable, positions: np.ndarray) -> np.ndarray:
    """(n,) float64: the share of its classes that the model has right, of answered examples."""
    import torch

    rows = view.rows(torch.from_numpy(positions).to(view.device))
    predicted = view.task.predicted(rows).cpu().numpy()
    is_right = predicted == (label_table.labels_of(positions) > 0.5)
    if isinstance(view.task, MultiClass):
        return is_right.all(1).astype(np.float64)
    share: np.ndarray = is_right.mean(1).astype(np.float64)
    return share
