"""Which labels are likely to be wrong: those that a model which has not learned them doubts."""

from __future__ import annotations

import numpy as np

from tailor.task import MultiClass, Task


def label_doubt(task: Task, labels: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """(n,) float64 from 0 to 1: the probability that the label is another one, as the model sees
    it; multi-label, that of the class that it doubts most.

    Were wrong labels equally likely everywhere, and no class more likely than another to be put
    down wrongly, no other order would find more of them: the chance that a label is wrong then
    falls with the probability of what it says.

    labels  (n, K) of 0 and 1
    probs   (n, K) of a model that has not learned these labels
    """
    is_labelled = labels > 0.5
    exact = probs.astype(np.float64)
    if isinstance(task, MultiClass):
        of_labelled_class = np.where(is_labelled, exact, 0.0)
        return 1 - of_labelled_class.sum(1)
    against = np.where(is_labelled, 1 - exact, exact)
    doubt: np.ndarray = against.max(1)
    return doubt
