"""Results folders -> one Results for each experiment in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from tailor.errors import InputError
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.rows import Row, load_rows, trial_of

#: contenders that come first in tables and figures
FIRST = ("TAILOR", "random")


@dataclass(frozen=True)
class Design:
    """What trials must have in common to be compared.

    model  None in rows that are older than that column
    """

    data: str
    model: str | None
    batch: int
    rounds: int

    def texts(self) -> tuple[str, ...]:
        model = self.model or "model not known"
        return (self.data, model, f"batch {self.batch}", f"{self.rounds} rounds")


#: the trials of one design, each with its rows by round
Designs = dict[Design, list[list[Row]]]


def group(rows: Sequence[Row]) -> list[Results]:
    """Rows of any experiments -> one Results each, in order of appearance; TAILOR and random come
    first.

    Where trials of one name are of several designs, there is one for each design.
    """
    experiments: dict[str, Designs] = {}
    for trial in _trials(rows):
        name = trial[0]["experiment"]
        designs = experiments.setdefault(name, {})
        designs.setdefault(_design(trial), []).append(trial)
    grouped = []
    for name, designs in experiments.items():
        merged = _with_older_rows(designs)
        for design, members in merged.items():
            full_name = name
            if len(merged) > 1:
                difference = _what_differs(design, list(merged))
                full_name = f"{name} ({difference})"
            results = _results(full_name, members, design.model)
            if results.rows:
                grouped.append(results)
    return grouped


def _trials(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each trial, by round; trials in order of appearance."""
    trials: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        trials.setdefault(trial_of(row), []).append(row)
    for trial in trials.values():
        trial.sort(key=itemgetter("round"))
    return list(trials.values())


def _design(trial: list[Row]) -> Design:
    first = trial[0]
    last = trial[-1]
    batch = first.get("batch")
    if batch is None:
        # Rows from before that column: every round has as many labels as the first batch.
        batch = first["labels"] // (first["round"] + 1)
    return Design(
        first["data"],
        last.get("model"),
        batch,
        first["rounds"],
    )


def _with_older_rows(designs: Designs) -> Designs:
    """Rows of before the model was a column go with those that have one, where it can only be that
    one.
    """
    models = {design.model for design in designs}
    models.discard(None)
    only_model = None
    if len(models) == 1:
        only_model = models.pop()
    merged: Designs = {}
    for design, members in designs.items():
        model = design.model or only_model
        completed = replace(design, model=model)
        merged.setdefault(completed, []).extend(members)
    return merged


def _what_differs(design: Design, designs: list[Design]) -> str:
    """What sets a design apart from the others."""
    texts_of_all = [other.texts() for other in designs]
    differing = []
    for place, text in enumerate(design.texts()):
        texts_here = {texts[place] for texts in texts_of_all}
        if len(texts_here) > 1:
            differing.append(text)
    return ", ".join(differing)


def _results(name: str, trials: list[list[Row]], model: str | None) -> Results:
    whole: dict[str, dict[int, list[Row]]] = {}
    unfinished = 0
    for rows in sorted(trials, key=_trial_order):
        first = rows[0]
        contender = first["contender"]
        seed = first["seed"]
        rounds = [row["round"] for row in rows]
        if len(set(rounds)) < len(rounds):
            raise InputError(
                f"{name}: a round of {contender!r} with seed {seed} comes twice in the rows; "
                "take one of the copies out"
            )
        all_rounds = list(range(first["rounds"] + 1))
        if rounds == all_rounds:
            whole.setdefault(contender, {})[seed] = rows
        else:
            unfinished += 1
    return Results(name, whole, unfinished, model)


def _trial_order(trial: list[Row]) -> tuple[int, str, int]:
    contender = trial[0]["contender"]
    seed = trial[0]["seed"]
    place = len(FIRST)
    if contender in FIRST:
        place = FIRST.index(contender)
    return place, contender.lower(), seed


def load(*folders: Path) -> list[Results]:
    """The experiments in results folders. One that several folders hold comes once for each, with
    the folder's name.
    """
    loaded: list[Results] = []
    for folder in folders:
        for results in group(load_rows(folder)):
            taken = {other.name for other in loaded}
            name = results.name
            if name in taken:
                name = f"{results.name} ({folder.name})"
            if name in taken:
                name = f"{results.name} ({folder})"
            loaded.append(replace(results, name=name))
    if not loaded:
        names = ", ".join(map(str, folders))
        raise InputError(f"no trial in {names} is through yet: go on with `tailor bench run`")
    return loaded
