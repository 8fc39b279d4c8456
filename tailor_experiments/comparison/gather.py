"""Results folders -> one Results for each experiment in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tailor.errors import InputError
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.rows import Row, load_rows

#: data, model (None: rows of before it was a column), batch, rounds: trials that differ in these
#: can't be compared
Design = tuple[str, str | None, int, int]


def group(rows: Sequence[Row]) -> list[Results]:
    """Rows of any experiments -> one Results each, in order of appearance; TAILOR and random come
    first.

    Where trials of one name are of several designs, there is one for each design.
    """
    trials: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        trials.setdefault((row["experiment"], row["contender"], row["seed"]), []).append(row)
    found: dict[str, dict[Design, list[list[Row]]]] = {}
    for (name, _, _), own in trials.items():
        ordered = sorted(own, key=lambda r: r["round"])
        found.setdefault(name, {}).setdefault(_design(ordered), []).append(ordered)
    results = []
    for name, designs in found.items():
        merged = _merged(designs)
        for design, members in merged.items():
            own_name = f"{name} ({_apart(design, list(merged))})" if len(merged) > 1 else name
            results.append(_results(own_name, members, design[1]))
    return [one for one in results if one.rows]


def _design(trial: list[Row]) -> Design:
    first = trial[0]
    last = trial[-1]
    batch = first["labels"] // (first["round"] + 1)
    return first["data"], last.get("model"), batch, first["rounds"]


def _merged(designs: dict[Design, list[list[Row]]]) -> dict[Design, list[list[Row]]]:
    """Rows of before the model was a column go with those that have one, where it can only be that
    one.
    """
    models = {model for _, model, _, _ in designs if model is not None}
    only = models.pop() if len(models) == 1 else None
    found: dict[Design, list[list[Row]]] = {}
    for (data, model, batch, rounds), members in designs.items():
        found.setdefault((data, model or only, batch, rounds), []).extend(members)
    return found


def _apart(design: Design, designs: list[Design]) -> str:
    """What sets a design apart from the others."""
    texts = [
        (data, model or "model not known", f"batch {b}", f"{r} rounds")
        for data, model, b, r in designs
    ]
    own = texts[designs.index(design)]
    return ", ".join(text for at, text in enumerate(own) if len({other[at] for other in texts}) > 1)


def _results(name: str, trials: list[list[Row]], model: str | None) -> Results:
    whole: dict[str, dict[int, list[Row]]] = {}
    unfinished = 0
    for rows in sorted(trials, key=lambda rows: (*_place(rows[0]["contender"]), rows[0]["seed"])):
        first = rows[0]
        numbers = [row["round"] for row in rows]
        if len(set(numbers)) < len(numbers):
            who = f"{first['contender']!r} with seed {first['seed']}"
            raise InputError(
                f"{name}: a round of {who} comes twice in the rows; take one of the copies out"
            )
        if numbers == list(range(first["rounds"] + 1)):
            whole.setdefault(first["contender"], {})[first["seed"]] = rows
        else:
            unfinished += 1
    return Results(name, whole, unfinished, model)


def _place(contender: str) -> tuple[int, str]:
    known = ["TAILOR", "random"]
    return (known.index(contender) if contender in known else len(known), contender.lower())


def load(*folders: Path) -> list[Results]:
    """The experiments in results folders. One that several folders hold comes once for each, with
    the folder's name.
    """
    results: list[Results] = []
    for folder in folders:
        for found in group(load_rows(folder)):
            taken = {r.name for r in results}
            name = found.name if found.name not in taken else f"{found.name} ({folder.name})"
            if name in taken:
                name = f"{found.name} ({folder})"
            results.append(replace(found, name=name))
    if not results:
        raise InputError(
            f"no trial in {', '.join(map(str, folders))} is through yet: go on with `tailor "
            "bench run`"
        )
    return results
