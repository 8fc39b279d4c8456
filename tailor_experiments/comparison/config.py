"""An experiment's TOML: what it holds, and reading it with errors that name the line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.run import config
from tailor.run.config import LIST, TEXT, WHOLE, Key

SWITCH = (bool,)
#: the keys of [data] that are paths
PATHS = ("path", "test")
SCHEMA: dict[str, dict[str, Key]] = {
    "experiment": {
        "name": Key(TEXT, None, "what tables and figures call it", required=True),
        "batch": Key(WHOLE, 100, "labels a round, and random ones to begin with"),
        "rounds": Key(WHOLE, 20, "rounds after the random batch"),
        "trials": Key(WHOLE, 4, "trials for each contender"),
        "seed": Key(WHOLE, 0, "the seed of the first trial; the next ones follow"),
        "reward": Key(TEXT, "diversity", "diversity: balance the classes; search: find positives"),
        "families": Key(
            LIST,
            [],
            "candidates of contenders that name none; narrow and wide are the paper's sets",
        ),
    },
    "data": {
        "name": Key(
            TEXT, None, "digits, digits-multilabel, or a dataset that `tailor data check` knows"
        ),
        "path": Key(TEXT, None, "the dataset's folder; without a name, any pool with known labels"),
        "test": Key(TEXT, None, "without a name: a second pool, for testing only"),
        "options": Key(
            (dict,), {}, "of the dataset or the pool, such as {classes = 2} or {label = 'label'}"
        ),
    },
    "model": config.SCHEMA["model"],
}
CONTENDER: dict[str, Key] = {
    "label": Key(TEXT, None, "what tables and figures call it", required=True),
    "selector": Key(TEXT, "tailor", "who chooses among the candidates"),
    "families": Key(LIST, [], "candidates; empty: those of [experiment]"),
    "reward": Key(TEXT, None, "by default that of [experiment]"),
    "reveal": Key(
        SWITCH, False, "tell each label before the next pick, as galaxy(pending=revealed) wants it"
    ),
}


@dataclass(frozen=True)
class Contender:
    """A way to choose examples: a selector over families. Without families, over the
    experiment's.
    """

    label: str
    selector: str = "tailor"
    families: tuple[str, ...] = ()
    reward: str | None = None
    reveal: bool = False  # labels are told one by one, so that arms may use them within the round

    @property
    def folder(self) -> str:
        return re.sub(r"[^a-z0-9.]+", "-", self.label.lower()).strip("-.") or "contender"


@dataclass(frozen=True)
class Experiment:
    """Contenders on one dataset, as plain values. The same values, the same rows (on a CPU)."""

    name: str
    data: dict[str, Any]
    model: dict[str, Any] = field(default_factory=lambda: {"name": "probe"})
    contenders: tuple[Contender, ...] = ()  # empty: default_contenders()
    families: tuple[str, ...] = ()
    batch: int = 100
    rounds: int = 20
    trials: int = 4
    seed: int = 0
    reward: str = "diversity"

    def __post_init__(self) -> None:
        for name in ("batch", "rounds", "trials"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: at least 1 is needed")
        if not 0 <= self.seed < 2**62:
            raise InputError(f"seed is {self.seed}: it must lie in [0, 2^62)")
        for what in ("label", "folder"):
            counts = Counter(getattr(c, what) for c in self.contenders)
            twice = [name for name, count in counts.items() if count > 1]
            if twice:
                raise InputError(
                    f"two contenders have the {what} {twice[0]!r}: give each a label of its own"
                )

    def complete(self, kind: str) -> Experiment:
        """With families, reward and contenders filled in, for a kind of task."""
        families = named_sets(self.families or ("narrow",), kind)
        chosen = self.contenders or default_contenders(families)
        full = [
            replace(
                c, families=named_sets(c.families, kind) or families, reward=c.reward or self.reward
            )
            for c in chosen
        ]
        return replace(self, families=families, contenders=tuple(full))

    def changed(
        self,
        data: str | None = None,
        device: str | None = None,
        only: Sequence[str] = (),
        **numbers: int | None,
    ) -> Experiment:
        """With what is not None in place of its own: the data's path, the device, batch, rounds,
        trials.

        only  labels of the contenders to keep; the experiment must be complete()
        """
        if data is not None and "path" not in self.data:
            raise InputError(
                f"dataset {self.data.get('name')!r} has no path, so {data!r} can't take its place"
            )
        for label in only:
            if label not in (labels := [c.label for c in self.contenders]):
                raise UnknownName("contender", label, labels)
        return replace(
            self,
            data=self.data if data is None else {**self.data, **self._paths_at(data)},
            model=self.model if device is None else {**self.model, "device": device},
            contenders=tuple(c for c in self.contenders if c.label in only)
            if only
            else self.contenders,
            **{name: value for name, value in numbers.items() if value is not None},  # type: ignore[arg-type]
        )

    def _paths_at(self, place: str) -> dict[str, str]:
        """The pool there instead; with a test set of its own both, as they lie below the folder
        that holds them.
        """
        paths = {key: os.path.abspath(self.data[key]) for key in PATHS if key in self.data}
        if "test" not in paths:
            return {"path": place}
        home = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
        names = {key: os.path.relpath(path, home) for key, path in paths.items()}
        if os.path.isfile(place):
            raise InputError(
                f"{place} is one file: name the folder that holds {names['path']} and "
                f"{names['test']}"
            )
        return {key: os.path.join(place, name) for key, name in names.items()}

    def trial_config(self, contender: Contender, seed: int) -> dict[str, Any]:
        """All that a trial's rows depend on. Of paths only the last part: data may be moved."""
        data = {k: Path(v).name if k in PATHS else v for k, v in self.data.items()}
        own = {
            "name": self.name,
            "data": data,
            "model": self.model,
            "batch": self.batch,
            "rounds": self.rounds,
        }
        named = {k: v for k, v in asdict(contender).items() if (k, v) != ("reveal", False)}
        return {**own, "contender": named, "seed": seed}


def named_sets(families: Sequence[str], kind: str) -> tuple[str, ...]:
    """Families in which "narrow" and "wide" stand for the paper's sets for the kind of task.

    >>> named_sets(["narrow", "coreset"], "multi-class")
    ('galaxy', 'confidence', 'badge', 'coreset')
    """
    from tailor.strategies import NARROW, WIDE

    sets = {"narrow": NARROW[kind], "wide": WIDE[kind]}
    return tuple(dict.fromkeys(one for family in families for one in sets.get(family, [family])))


def digest(values: dict[str, Any]) -> str:
    """A short hash of plain values, the same in every process."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def default_contenders(families: Sequence[str]) -> tuple[Contender, ...]:
    """TAILOR, random, each family alone, random meta, ALBL, COMB, DEAL and linear Thompson
    sampling.
    """
    return (
        Contender("TAILOR", "tailor"),
        Contender("random", "random-meta", ("random",)),
        *(
            Contender(f"{name} alone", "random-meta", (name,))
            for name in families
            if name != "random"
        ),
        Contender("random meta", "random-meta"),
        Contender("ALBL", "albl"),
        Contender("COMB", "comb"),
        Contender("DEAL", "deal"),
        Contender("linear Thompson", "linear-thompson"),
    )


def read(path: Path) -> Experiment:
    """The experiment in a TOML file; paths in it are relative to its folder."""
    if not path.is_file():
        raise InputError(
            f"no file at {path}: give the TOML of an experiment; docs/how-to/experiments.md "
            "shows one"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    blocks = given.pop("contender", [])
    if not isinstance(blocks, list):
        raise InputError(
            f"{path}: contender is a list: write [[contender]] and its keys below, once for each"
        )
    for section in given:
        if section not in SCHEMA:
            known = UnknownName("section", section, [*SCHEMA, "contender"])
            raise InputError(f"{path}, line {config.line_of_key(text, section, None)}: {known}")
    values = {
        name: check_keys(given.get(name, {}), name, keys, text, path)
        for name, keys in SCHEMA.items()
    }
    texts = _masked(text, len(blocks))
    found = [check_keys(b, "contender", CONTENDER, t, path) for b, t in zip(blocks, texts)]
    data = {k: v for k, v in values["data"].items() if v is not None}
    if "name" not in data and "path" not in data:
        raise InputError(f"{path}: [data] needs name or path: {SCHEMA['data']['name'].doc}")
    for key in PATHS:
        if key in data:
            data[key] = str(path.parent / data[key])
    own = values["experiment"]
    try:
        contenders = tuple(Contender(**{**c, "families": tuple(c["families"])}) for c in found)
        return Experiment(
            data=data,
            model={k: v for k, v in values["model"].items() if v is not None},
            contenders=contenders,
            **{**own, "families": tuple(own["families"])},
        )
    except InputError as error:
        blamed = next((k for k in own if str(error).startswith(f"{k} is ")), None)
        place = (
            f"{path}, line {config.line_of_key(text, 'experiment', blamed)}"
            if blamed
            else str(path)
        )
        raise InputError(f"{place}: {error}") from error


def check_keys(
    given: Any, section: str, schema: dict[str, Key], text: str, path: Path
) -> dict[str, Any]:
    """The keys of one section, each known and of its type; defaults filled in."""

    def at(key: str | None = None) -> str:
        return f"{path}, line {config.line_of_key(text, section, key)}"

    if not isinstance(given, dict):
        raise InputError(f"{at()}: {section} is a section: write [{section}] and its keys below")
    for key, value in given.items():
        if key not in schema:
            raise InputError(f"{at(key)}: {UnknownName(f'key in [{section}]', key, schema)}")
        wanted = schema[key]
        texts = wanted.kinds != LIST or (
            isinstance(value, list) and all(isinstance(v, str) for v in value)
        )
        switch = isinstance(value, bool) and wanted.kinds != SWITCH  # to Python true is a number
        if not isinstance(value, wanted.kinds) or switch or not texts:
            shown = {list: "list of texts", bool: "true or false"}
            names = " or ".join(shown.get(k, k.__name__) for k in wanted.kinds)
            raise InputError(f"{at(key)}: {key} = {value!r} must be {names}: {wanted.doc}")
    for key, wanted in schema.items():
        if wanted.required and key not in given:
            raise InputError(f"{at()}: [{section}] needs {key}: {wanted.doc}")
    return {key: given.get(key, wanted.default) for key, wanted in schema.items()}


def _masked(text: str, blocks: int) -> list[str]:
    """For each [[contender]], the text with only its block left, as a plain section, on the same
    lines.
    """
    found: list[list[str]] = [[] for _ in range(blocks)]
    current = -1
    for line in text.split("\n"):
        header = re.match(r"\s*\[", line)
        if header:
            inside = re.match(r"\s*\[\[\s*contender\s*\]\]", line)
            seen = sum("[contender]" in part for part in found)
            current = seen if inside else -1
            line = "[contender]" if inside else line
        for number, lines in enumerate(found):
            lines.append(line if number == current else "")
    return ["\n".join(lines) for lines in found]
