"""What is recorded of rounds and picks: enough to say later why an example was asked for."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass

import numpy as np

from tailor.run.holdout import HoldoutEstimate
from tailor.selection.class_edits import ClassEdit
from tailor.selection.round import NOBODY
from tailor.storage.base import Event

#: arms below 0 in an "asked" event
HOLDOUT = -3
START = -2
NAMES = {HOLDOUT: "hold-out", START: "random start", NOBODY: "(nobody)"}


#: How numpy heads an array in an .npz. numpy itself evaluates this as Python source, which CPython
#: 3.11 cannot do in two threads at once; and rounds are prepared in one thread while answers are
#: taken in others.
HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([\d, "
    rb"]*)\), \} *\n",
    re.DOTALL,
)


def pack(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes | None) -> dict[str, np.ndarray]:
    if not data:
        return {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {
            name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()
        }


def _array(data: bytes) -> np.ndarray:
    header = HEADER.match(data)
    if header is None:
        raise ValueError(
            f"an array in the run's record begins with {data[:80]!r}, which is not how numpy "
            "heads one"
        )
    numbers = np.frombuffer(data, header[1].decode(), offset=header.end())
    shape = [int(n) for n in header[3].split(b",") if n.strip()]
    return numbers.reshape(shape, order="F" if header[2] == b"True" else "C").copy()


@dataclass(frozen=True)
class PickRecord:
    """Why an example was asked for."""

    id: str
    round: int
    slot: int
    arm: str  # the name of an arm, "hold-out", "random start" or "(nobody)"
    chance: float  # the probability with which the arm was drawn for a slot
    mean: (
        np.ndarray | None
    )  # (K,) what the arm's posterior expected to find, for selectors that have one
    weights: np.ndarray | None  # (K,) v
    predicted: np.ndarray | None  # (K,) what the model said


@dataclass
class RoundRecord:
    """What was fixed when a round was opened."""

    number: int
    size: int  # picks that make the batch
    seed_round: bool
    weights: np.ndarray | None
    chances: np.ndarray | None  # (M,)
    pulled: np.ndarray  # arms in the plan, ascending
    beliefs: np.ndarray | None  # (len(pulled), K)
    estimate: HoldoutEstimate | None
    holdout_slots: np.ndarray  # (slots,) bool: beyond `size` there may be picks to spare
    holdout: np.ndarray  # positions for those slots
    start: np.ndarray  # positions of a random start
    asked: int = 0
    event: int = 0
    as_of: int = 0  # the last event that the round's model and plan knew of
    labels: int | None = None  # how many answers there were then

    @classmethod
    def of(cls, event: Event) -> RoundRecord:
        body = event.body
        arrays = unpack(event.data)
        return cls(
            body["number"],
            body["size"],
            body["seed_round"],
            arrays.get("weights"),
            arrays.get("chances"),
            arrays.get("pulled", np.empty(0, np.int64)),
            arrays.get("beliefs"),
            HoldoutEstimate(**body["estimate"]) if body.get("estimate") else None,
            arrays["reserve_slots"],
            arrays["reserve"],
            arrays["start"],
            event=event.number,
            as_of=body.get("as_of", event.number - 1),
            labels=body.get("labels"),
        )

    @property
    def slots(self) -> int:
        return len(self.holdout_slots)

    def chance(self, arm: int) -> float:
        return 1.0 if arm < 0 or self.chances is None else float(self.chances[arm])

    def belief(self, arm: int) -> np.ndarray | None:
        if arm < 0 or self.beliefs is None:
            return None
        found: np.ndarray = self.beliefs[int(np.searchsorted(self.pulled, arm))].astype(np.float32)
        return found

    def reclass(self, change: ClassEdit, arms: np.ndarray, size: int) -> None:
        """The classes are others from now on. arms (M,): what each arm has become, among `size`."""
        if self.weights is not None:
            self.weights = change.weights(self.weights)
        if self.chances is not None:
            self.chances = np.bincount(arms, weights=self.chances, minlength=size)
        pulled, first = np.unique(arms[self.pulled], return_index=True)
        self.pulled = pulled
        if self.beliefs is not None:
            self.beliefs = change.shares(self.beliefs.astype(np.float32))[first]
