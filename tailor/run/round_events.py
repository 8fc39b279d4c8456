"""The events of a round: that it was opened, and which examples were asked in it. Their arrays are
stored as bytes beside the body.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from tailor.bandits.base import Fit
from tailor.run.array_codec import pack, unpack
from tailor.run.event_base import Body, RunEvent
from tailor.run.holdout import HoldoutEstimate


@dataclass(frozen=True)
class RoundOpened(RunEvent):
    """A round was planned: everything about it that chance or the model decided."""

    kind = "round"
    number: int
    size: int  # picks that make the batch
    seed_round: bool  # a start, without a model
    estimate: HoldoutEstimate | None
    as_of: int | None  # the last event that the round's model and plan knew of
    labels: int | None  # how many answers there were then
    holdout_slots: np.ndarray  # (slots,) bool. Beyond `size` there may be picks to spare
    holdout: np.ndarray  # positions for those slots, in order
    start: np.ndarray  # positions of a start, for the other slots
    coverage: np.ndarray  # those of them that were chosen to cover the pool, not at random
    weights: np.ndarray | None = None  # (K,) v; this and what follows: not at a start
    chances: np.ndarray | None = None  # (M,)
    pulled: np.ndarray | None = None  # arms in the plan, ascending
    learned: np.ndarray | None = None  # positions whose answers the selector learned from
    beliefs: np.ndarray | None = None  # (len(pulled), K) float16, of selectors with a posterior
    fit: Fit | None = None  # what the selector was told of the model, if it wants to know

    def body(self) -> Body:
        estimate = None
        if self.estimate is not None:
            estimate = asdict(self.estimate)
        body: Body = {
            "number": self.number,
            "size": self.size,
            "seed_round": self.seed_round,
            "estimate": estimate,
            "as_of": self.as_of,
            "labels": self.labels,
        }
        if self.fit is not None:
            body["pool"] = self.fit.pool
            body["reward"] = self.fit.reward
        return body

    def data(self) -> bytes:
        # the hold-out was called the reserve when the first stores were written
        arrays = {
            "reserve_slots": self.holdout_slots,
            "reserve": self.holdout,
            "start": self.start,
            "coverage": self.coverage,
            "weights": self.weights,
            "chances": self.chances,
            "pulled": self.pulled,
            "learned": self.learned,
            "beliefs": self.beliefs,
        }
        if self.fit is not None:
            arrays["correct"] = self.fit.correct
            arrays["fit_chances"] = self.fit.chances
            arrays["rates"] = self.fit.rates
        known_arrays = {}
        for name, array in arrays.items():
            if array is not None:
                known_arrays[name] = array
        return pack(known_arrays)

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        arrays = unpack(data)
        estimate = None
        if body.get("estimate"):
            estimate = HoldoutEstimate(**body["estimate"])
        fit = None
        if "rates" in arrays:
            fit = Fit(
                correct=arrays["correct"],
                chances=arrays["fit_chances"],
                rates=arrays["rates"],
                pool=body["pool"],
                reward=body["reward"],
            )
        return cls(
            number=body["number"],
            size=body["size"],
            seed_round=body["seed_round"],
            estimate=estimate,
            as_of=body.get("as_of"),
            labels=body.get("labels"),
            holdout_slots=arrays["reserve_slots"],
            holdout=arrays["reserve"],
            start=arrays["start"],
            # Starts were random in the first stores.
            coverage=arrays.get("coverage", np.empty(0, np.int64)),
            weights=arrays.get("weights"),
            chances=arrays.get("chances"),
            pulled=arrays.get("pulled"),
            learned=arrays.get("learned"),
            beliefs=arrays.get("beliefs"),
            fit=fit,
        )


@dataclass(frozen=True)
class ExamplesAsked(RunEvent):
    """Picks of a round were handed out, each with its slot and its arm."""

    kind = "asked"
    round: int
    positions: np.ndarray  # (n,)
    slots: np.ndarray  # (n,) int32
    arms: np.ndarray  # (n,) int32; below 0: COVERAGE, HOLDOUT, START or NOBODY
    predicted: np.ndarray | None  # (n, K) float16 what the model said; None at a random start

    def body(self) -> Body:
        return {"round": self.round}

    def data(self) -> bytes:
        arrays = {
            "positions": self.positions,
            "slots": self.slots,
            "arms": self.arms,
        }
        if self.predicted is not None:
            arrays["predicted"] = self.predicted
        return pack(arrays)

    @classmethod
    def read(cls, body: Body, data: bytes | None) -> Self:
        arrays = unpack(data)
        return cls(
            round=body["round"],
            positions=arrays["positions"],
            slots=arrays["slots"],
            arms=arrays["arms"],
            predicted=arrays.get("predicted"),
        )
