"""What an experiment compares: contenders on one dataset, as plain values."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.strategies import expand_sets

#: keys of a contender that came later than the first published rows, and their defaults
LATER_KEYS: dict[str, Any] = {
    "reveal": False,
    "start": "random",
    "cover": False,
    "model": {},
}
#: the keys of an experiment's data that are paths
PATHS = ("path", "test")


@dataclass(frozen=True)
class Contender:
    """A way to choose examples: a selector over families of arms.

    label     what tables and figures call it
    families  its candidates; without any, those of the experiment
    reward    by default that of the experiment
    reveal    labels are told one by one, so that arms may use them within the round
    start     how the first batch is chosen: "random", "coverage" or "half"
    cover     the arms propose, and what covers the pool best is taken
    model     options of the model in place of the experiment's
    """

    label: str
    selector: str = "tailor"
    families: tuple[str, ...] = ()
    reward: str | None = None
    reveal: bool = False
    start: str = "random"
    cover: bool = False
    model: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The label as part of a folder's name.

        >>> Contender("ALBL, few").folder
        'albl-few'
        """
        # Lower case: some disks don't tell it from upper case.
        name = re.sub(r"[^a-z0-9.]+", "-", self.label.lower())
        return name.strip("-.") or "contender"


@dataclass(frozen=True)
class Experiment:
    """Contenders on one dataset. The same values give the same rows (on a CPU).

    name        what tables and figures call it
    data        the keys of [data] in an experiment's file: name, path, test, options
    model       the model's name and options, as in tailor.toml
    contenders  without any, default_contenders()
    families    candidates of contenders that name none; without any, the paper's narrow set
    batch       labels a round, and random ones to begin with
    rounds      rounds after the random batch
    trials      trials for each contender, with the seeds `seed`, `seed` + 1, ...
    reward      of contenders that name none
    wrong       share of the answers that are wrong, drawn by the trial's seed

    Raises InputError for numbers out of range and for contenders that could not be told apart.
    """

    name: str
    data: dict[str, Any]
    model: dict[str, Any] = field(default_factory=lambda: {"name": "probe"})
    contenders: tuple[Contender, ...] = ()
    families: tuple[str, ...] = ()
    batch: int = 100
    rounds: int = 20
    trials: int = 4
    seed: int = 0
    reward: str = "diversity"
    wrong: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.wrong <= 1:
            raise InputError(f"wrong is {self.wrong}: it is a share, in [0, 1]")
        for name in ("batch", "rounds", "trials"):
            count = getattr(self, name)
            if count < 1:
                raise InputError(f"{name} is {count}: at least 1 is needed")
        # Half of what 64 bits hold: seeds are doubled and counted on.
        if not 0 <= self.seed < 2**62:
            raise InputError(f"seed is {self.seed}: it must lie in [0, 2^62)")
        _check_different("label", [contender.label for contender in self.contenders])
        # Labels that differ in nothing that a path keeps would write to one folder.
        _check_different("folder", [contender.folder for contender in self.contenders])

    def complete(self, kind: str) -> Experiment:
        """With families, reward and contenders filled in, for a kind of task."""
        families = tuple(expand_sets(self.families or ("narrow",), kind))
        contenders = self.contenders or default_contenders(families)
        completed = []
        for contender in contenders:
            candidates = tuple(expand_sets(contender.families, kind))
            completed.append(
                replace(
                    contender,
                    families=candidates or families,
                    reward=contender.reward or self.reward,
                )
            )
        return replace(self, families=families, contenders=tuple(completed))

    def changed(
        self,
        data: str | None = None,
        device: str | None = None,
        only: Sequence[str] = (),
        *,
        batch: int | None = None,
        rounds: int | None = None,
        trials: int | None = None,
    ) -> Experiment:
        """With what is given in place of its own.

        data    the path of the data
        device  that the model runs on
        only    labels of the contenders to keep; the experiment must be complete()
        """
        changes: dict[str, Any] = {
            "batch": batch,
            "rounds": rounds,
            "trials": trials,
        }
        if data is not None:
            changes["data"] = {**self.data, **self._paths_below(data)}
        if device is not None:
            changes["model"] = {**self.model, "device": device}
        if only:
            changes["contenders"] = self._contenders_called(only)
        asked_for = {name: value for name, value in changes.items() if value is not None}
        return replace(self, **asked_for)

    def _contenders_called(self, labels: Sequence[str]) -> tuple[Contender, ...]:
        """Those with one of these labels, in the experiment's order."""
        known_labels = [contender.label for contender in self.contenders]
        for label in labels:
            if label not in known_labels:
                raise UnknownName("contender", label, known_labels)
        return tuple(contender for contender in self.contenders if contender.label in labels)

    def _paths_below(self, place: str) -> dict[str, str]:
        """The paths of the data when it lies at another place.

        A pool alone is at that place. A pool and its test set lie below it as they lay below the
        folder that held both.
        """
        if "path" not in self.data:
            raise InputError(
                f"dataset {self.data.get('name')!r} has no path, so {place!r} can't take its place"
            )
        if "test" not in self.data:
            return {"path": place}
        pool_name, test_name = _below_common_folder(self.data["path"], self.data["test"])
        if os.path.isfile(place):
            raise InputError(
                f"{place} is one file: name the folder that holds {pool_name} and {test_name}"
            )
        return {
            "path": os.path.join(place, pool_name),
            "test": os.path.join(place, test_name),
        }

    def trial_config(self, contender: Contender, seed: int) -> dict[str, Any]:
        """All that a trial's rows depend on. Of paths only the last part: data may be moved.

        Its hash is written into every row, so what it holds must not change from one version to
        the next; keys that came later are left out where they have their default.
        """
        config = {
            "name": self.name,
            "data": self._data_without_folders(),
            "model": self.model,
            "batch": self.batch,
            "rounds": self.rounds,
            "contender": _without_later_defaults(contender),
            "seed": seed,
        }
        # A later key of the experiment's own.
        if self.wrong:
            config["wrong"] = self.wrong
        return config

    def _data_without_folders(self) -> dict[str, Any]:
        data = dict(self.data)
        for key in PATHS:
            if key in data:
                data[key] = Path(data[key]).name
        return data

    def model_of(self, contender: Contender) -> dict[str, Any]:
        """The name and options of a contender's model."""
        return {**self.model, **contender.model}


def _below_common_folder(*paths: str) -> list[str]:
    """The paths from the folder that holds all of them."""
    full_paths = [os.path.abspath(path) for path in paths]
    folders = [os.path.dirname(path) for path in full_paths]
    home = os.path.commonpath(folders)
    return [os.path.relpath(path, home) for path in full_paths]


def _without_later_defaults(contender: Contender) -> dict[str, Any]:
    """A contender's values, less those of LATER_KEYS that are the default."""
    values = asdict(contender)
    for key, default in LATER_KEYS.items():
        if values[key] == default:
            del values[key]
    return values


def _check_different(what: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(
                f"two contenders have the {what} {name!r}: give each a label of its own"
            )


def default_contenders(families: Sequence[str]) -> tuple[Contender, ...]:
    """TAILOR, random, each family alone, and the other selectors over all of the families."""
    alone = [
        Contender(f"{family} alone", "random-meta", (family,))
        for family in families
        if family != "random"
    ]
    return (
        Contender("TAILOR", "tailor"),
        Contender("random", "random-meta", ("random",)),
        *alone,
        Contender("random meta", "random-meta"),
        Contender("ALBL", "albl"),
        Contender("COMB", "comb"),
        Contender("DEAL", "deal"),
        Contender("linear Thompson", "linear-thompson"),
    )


def config_hash(values: dict[str, Any]) -> str:
    """A short hash of plain values, the same in every process."""
    # In the order of the keys: how a table was written makes no difference.
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
