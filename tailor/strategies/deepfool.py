"""deepfool: what a small change would bring into another class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tailor.common.checks import check_whole
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Idea
from tailor.strategies.boundaries import nearest_boundary
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.margin import Margin
from tailor.strategies.ranking import RankedCursor, first_depth, rank_pool
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Deepfool(ScoreStrategy):
    """Smallest distance to any boundary between two classes first.

    With `steps=0` the distance is that of the model's last layer, in features: exact for a linear
    head. Logits z are log p, which for a softmax gives the same differences; where no head is known
    (`head=`), the lengths |W_y − W_c| count as 1. With more steps the distance is measured through
    the whole network, in its input: each step of DeepFool goes to the boundary that is nearest as
    gradients tell, until the predicted class changes, and the length of the way counts. The
    `candidates` of smallest margin are measured; those beyond follow by their margin.

    Ducoffe and Precioso, "Adversarial Active Learning for Deep Networks: a Margin Based Approach",
    2018. Multi-class; needs probabilities, and with steps a network: the probe, a fine-tuned
    network or a torch model.

    steps       steps of DeepFool through the network; 0: the last layer alone
    candidates  examples that are measured through the network, or twice as many as are asked for
                where that is more

    Formula: s(x) = min_c (z_y − z_c) / |W_y − W_c| over the classes c other than the predicted y,
    smallest first; with steps |r₁ + r₂ + …|, each r_i = w · (z_y − z_c) / |w|² with w the gradient
    of z_c − z_y at the place that was reached, and c the class whose boundary is nearest there.

    Cost: one pass over the N × K probabilities with a K × K table of lengths. With steps, a
    prediction and up to ten gradients of each candidate for every step.

    When to use: like margin, where the classes' rows of weights differ in length; with steps, a
    network whose pictures can be changed, and a batch small enough to pay for gradients.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]))
    >>> Deepfool().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "deepfool"
    idea = Idea.UNCERTAIN
    tasks = MULTI_CLASS
    ways_out: ClassVar[Mapping[Need, str]] = {Need.GRADIENTS: "take deepfool(steps=0), "}

    def __init__(self, *, steps: int = 0, candidates: int = 1000) -> None:
        self.steps = check_whole(steps, "steps", 0)
        self.candidates = check_whole(candidates, "candidates")
        if self.steps:
            self.needs = frozenset({Need.PROBABILITIES, Need.GRADIENTS})

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(nearest_boundary)

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        if self.steps == 0:
            return super().open(arms, view, pulls, rngs)
        return [self._measuring_cursor(view, count) for count in pulls]

    def _measuring_cursor(self, view: PoolView, pulls: int) -> Cursor:
        """Its first picks are measured through the network, which stays in this process."""
        count = max(self.candidates, first_depth(pulls))
        candidates = rank_pool(Margin(), view, count)
        distances = view.boundary_distances(candidates, self.steps)
        ties = view.ties[candidates]
        # By distance, then by ties: lexsort's last key counts most.
        order = np.lexsort((ties, distances))
        measured = candidates[order]
        return RankedCursor(
            view,
            ranked=measured,
            pulls=pulls,
            rank=partial(_rank_on, view, measured),
        )

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        return OpeningWork(bytes_read=shape.probability_bytes)


def _rank_on(view: PoolView, measured: np.ndarray, count: int) -> np.ndarray:
    """Positions of `count` examples at least, or of all: the measured ones, then by margin."""
    deeper = max(count, 2 * len(measured))
    by_margin = rank_pool(Margin(), view, deeper)
    return np.concatenate([measured, by_margin[len(measured) :]])
