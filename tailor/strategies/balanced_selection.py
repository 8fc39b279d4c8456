"""base: for every class, the examples nearest to its boundary."""

from __future__ import annotations

from collections.abc import Iterable

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, Idea
from tailor.strategies.boundaries import leaders, log_probabilities, row_distances
from tailor.strategies.ranking import ClassScores
from tailor.strategies.score_strategy import ScoreStrategy


class BalancedSelection(ScoreStrategy):
    """BASE: each class's arm takes what lies nearest to the boundary of its class, in features.

    An example that is predicted as another class y counts by its distance to the boundary between y
    and the arm's class; one that is predicted as the arm's class, by its distance to the nearest of
    its boundaries. So every class gets its share of a batch, and rare classes are sought where the
    model might first find them. Logits z are log p, which for a softmax gives the same differences.
    Where no head is known (`head=`), the lengths |W_y − W_c| count as 1: distances are then gaps of
    log-probabilities.

    Emam et al., "Active Learning at the ImageNet Scale", 2021. Multi-class; needs probabilities,
    and measures in features where the model's head is known: the probe, a fine-tuned network and
    scikit-learn's linear models hand it in.

    Formula: d_c(x) = (z_y − z_c) / |W_y − W_c| with y the predicted class of x; for c = y the
    smallest of the others. Arm c takes the smallest d_c.

    Cost: one pass over the N × K probabilities with a K × K table of lengths, then one over the
    columns of the arms that were pulled, with a partial sort each.

    When to use: many classes of which each needs its share of labels, and a model whose boundaries
    mean something: from some ten labels a class on.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(3)
    >>> view = ArrayView(task, np.array([[0.6, 0.4, 0.0], [0.7, 0.1, 0.2], [0.1, 0.9, 0.0]]))
    >>> arms = BalancedSelection().arms(task)
    >>> [arm.open(view, 1, np.random.default_rng(0)).take() for arm in arms]
    [0, 0, 1]
    """

    name = "base"
    idea = Idea.UNCERTAIN
    tasks = MULTI_CLASS
    per_class = True

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        # One pass for all arms; then each needs its own column alone.
        predicted, top, nearest = view.per_row(leaders).T
        predicted = predicted.long()
        table = row_distances(view, top.dtype)
        numbers = [klass for klass in classes if klass is not None]
        for klass, column in view.columns(numbers):
            distances = top - log_probabilities(column)
            if table is not None:
                lengths = table[klass]
                distances /= lengths[predicted]
            is_own = predicted == klass
            yield klass, nearest.where(is_own, distances)
