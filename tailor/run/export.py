"""Labels out of a run: as tables, as folders, as a dataset."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np

from tailor.common.atomic_files import atomic_path
from tailor.errors import InputError, UnknownName
from tailor.pools.base import Pool
from tailor.pools.image_folder import ImageFolder
from tailor.run.records import PickRecord
from tailor.run.row_files import Row, write_rows
from tailor.run.state import RunState
from tailor.task import MultiClass, Task

FORMATS = ("csv", "jsonl", "parquet", "folders", "huggingface")
#: the format of a file by its ending
FORMAT_BY_SUFFIX = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}

#: the longest file name, in bytes, that file_name() leaves as it is; file systems allow 255
LONGEST_NAME = 200

#: the columns of a pick, for an example that was labelled without being asked for
NEVER_ASKED: Row = {"round": None, "slot": None, "arm": None, "chance": None}


def export_format(out: Path, format: str | None = None) -> str:
    """The format that was named, or the one of the path's ending. Raises InputError where neither
    says it.
    """
    known_format = format or FORMAT_BY_SUFFIX.get(out.suffix, "")
    if not known_format:
        raise InputError(
            f"{out} has no known ending: name a --format (csv, jsonl, parquet, folders, "
            "huggingface)"
        )
    return known_format


def rows(run_state: RunState, probs: np.ndarray | None = None) -> Iterator[Row]:
    """One row an answered example, and with probs (N, K) one for every other readable example
    too.
    """
    table = run_state.label_table
    for position in range(len(run_state.ids)):
        is_predicted = probs is not None and position not in run_state.aside
        if is_predicted or table.has_label(position):
            yield _row(run_state, position, probs)


def _row(run_state: RunState, position: int, probs: np.ndarray | None) -> Row:
    task = run_state.task
    label = run_state.label_of(position)
    pick = run_state.pick_record(position)
    is_holdout = run_state.label_table.picks.is_holdout(position)
    label_names = None
    if label is not None:
        label_names = _class_names(task, label)
    # What the model says now, in place of what it said when the example was asked for.
    prediction = None
    if probs is not None:
        prediction = probs[position]
    elif pick is not None:
        prediction = pick.predicted
    return {
        "id": run_state.ids[position],
        "label": label_names,
        "source": _source(label, pick),
        "holdout": bool(is_holdout),
        **_asked(pick),
        **_answered(run_state, position),
        **_prediction(task, prediction),
    }


def _source(label: np.ndarray | None, pick: PickRecord | None) -> str:
    """Where the label comes from."""
    if label is None:
        return "predicted"
    if pick is None:
        return "told"
    return "asked"


def _asked(pick: PickRecord | None) -> Row:
    """How the example came to be asked for."""
    if pick is None:
        return NEVER_ASKED
    return {
        "round": pick.round,
        "slot": pick.slot,
        "arm": pick.arm,
        "chance": round(pick.chance, 6),
    }


def _answered(run_state: RunState, position: int) -> Row:
    """Who gave the label, and when."""
    annotator, time = run_state.answered_by.get(position, (None, None))
    time_text = None
    if time:
        moment = datetime.fromtimestamp(time, UTC)
        time_text = moment.isoformat(timespec="seconds")
    return {"annotator": annotator, "time": time_text}


def _class_names(task: Task, label: np.ndarray) -> str | list[str]:
    """label (K,) -> the name of its class, in a multi-label task a list of them."""
    indices = np.flatnonzero(label).tolist()
    names = [task.classes[k] for k in indices]
    if isinstance(task, MultiClass):
        return names[0]
    return names


def _prediction(task: Task, probs: np.ndarray | None) -> Row:
    """probs (K,) -> what the model says, and how sure it is."""
    if probs is None:
        return {"prediction": None, "confidence": None}
    if isinstance(task, MultiClass):
        confidence = float(probs.max())
    else:  # of the class that it is least sure of
        margins = np.abs(probs - 0.5)
        confidence = float(margins.min() + 0.5)
    predicted = task.predicted(probs[None])
    return {
        "prediction": _class_names(task, predicted[0]),
        "confidence": round(confidence, 6),
    }


def export(
    run_state: RunState,
    out: Path,
    form: str,
    *,
    pool: Pool | None = None,
    probs: np.ndarray | None = None,
) -> int:
    """Write the labels to `out` in one of FORMATS; how many rows.

    pool    needed for "folders" and "huggingface", which hold the examples too
    probs   (N, K) what the model says now; with it "csv", "jsonl" and "parquet" hold a row for
            every readable example
    """
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    if form in ("csv", "jsonl"):
        return write_rows(out, rows(run_state, probs))
    listed = list(rows(run_state, probs))
    if form == "parquet":
        _write_parquet(listed, run_state.task, out)
        return len(listed)
    labelled = []
    for row in listed:
        if row["label"] is not None:
            labelled.append(row)
    if form == "folders":
        return _write_folders(labelled, out, pool)
    from tailor.run.dataset_folder import write_dataset

    if pool is None:
        raise InputError("the pool is needed to write examples")
    make_fresh(out)
    return write_dataset(
        labelled,
        run_state.task,
        out,
        pool,
    )


def check_fresh(out: Path) -> None:
    """Raises InputError for what is not a new or an empty folder."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is a file: name a new folder")
    if any(out.iterdir()):
        raise InputError(f"{out} is not empty: name a new folder")


def make_fresh(out: Path) -> None:
    """Make a folder that is not there yet, or is empty."""
    check_fresh(out)
    out.mkdir(parents=True, exist_ok=True)


def _write_parquet(listed: list[Row], task: Task, out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    label = pa.string()
    if not isinstance(task, MultiClass):
        label = pa.list_(pa.string())
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("label", label),
            ("source", pa.string()),
            ("holdout", pa.bool_()),
            ("round", pa.int64()),
            ("slot", pa.int64()),
            ("arm", pa.string()),
            ("chance", pa.float64()),
            ("annotator", pa.string()),
            ("time", pa.string()),
            ("prediction", label),
            ("confidence", pa.float64()),
        ]
    )
    # With a schema: a column in which nothing stands has a type, too.
    table = pa.Table.from_pylist(listed, schema=schema)
    with atomic_path(out) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _write_folders(labelled: list[Row], out: Path, pool: Pool | None) -> int:
    """A folder for each class with copies of its pictures; in a multi-label task a picture stands
    in each of its.

    Pictures that have vanished are left out.
    """
    if not isinstance(pool, ImageFolder):
        raise InputError(
            "folders can be made of a folder of images only: choose csv, jsonl, parquet or "
            "huggingface"
        )
    make_fresh(out)
    index_of = {}
    for index, example_id in enumerate(pool.ids):
        index_of[example_id] = index
    count = 0
    for row in labelled:
        example_id = row["id"]
        if example_id not in index_of:
            continue
        index = index_of[example_id]
        file = Path(pool.file(index))
        if not file.is_file():
            continue
        count += 1
        for class_folder in _class_folders(out, row["label"]):
            class_folder.mkdir(exist_ok=True)
            target = class_folder / file_name(example_id)
            shutil.copyfile(file, target)
    return count


def _class_folders(out: Path, label: str | list[str]) -> list[Path]:
    """The folders that a picture with this label belongs in."""
    names = label
    if isinstance(names, str):
        names = [names]
    # A picture with none of the classes is labelled, too.
    if not names:
        names = ["(none)"]
    return [out / file_name(name) for name in names]


def file_name(name: str) -> str:
    """A file name that stays inside its folder, different for different names."""
    quoted = ""
    for character in name:
        # % too, so that no other name is quoted to the same one.
        if character in '/\\:*?"<>|%\0':
            quoted += f"%{ord(character):02x}"
        else:
            quoted += character
    if not quoted.strip("."):  # ".." leads out of the folder
        quoted = "%2e" * len(quoted)
    encoded = os.fsencode(quoted)
    if len(encoded) <= LONGEST_NAME:
        return quoted
    # Its end is kept: there stand the number and the kind of the file.
    ending = encoded[-150:].decode(errors="ignore")
    hashed = blake2b(os.fsencode(name), digest_size=8)
    return f"{hashed.hexdigest()}-{ending}"
