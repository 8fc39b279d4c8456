"""Labels out of a run: as tables, as folders, as a dataset."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from tailor.common.atomic_files import atomic_path
from tailor.errors import InputError, UnknownName
from tailor.pools.base import Pool, Unreadable
from tailor.pools.image_folder import ImageFolder
from tailor.run.row_files import write_rows
from tailor.run.state import RunState
from tailor.task import MultiClass

FORMATS = ("csv", "jsonl", "parquet", "folders", "huggingface")


#: the format of a file by its ending
FORMAT_BY_SUFFIX = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


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


def rows(run_state: RunState, probs: np.ndarray | None = None) -> Iterator[dict[str, Any]]:
    """One row an answered example, and with probs (N, K) one for every other readable example
    too.
    """
    task = run_state.task
    labelled: dict[int, list[str]] = {}
    positions = run_state.label_table.answers.labels.positions
    for position, label in zip(positions.tolist(), run_state.label_table.labels_of(positions)):
        labelled[position] = [task.classes[k] for k in np.flatnonzero(label)]
    for position, one in enumerate(run_state.ids):
        if position not in labelled and (probs is None or position in run_state.aside):
            continue
        names = labelled.get(position)
        pick_record = run_state.pick_record(position)
        by, at = run_state.answered_by.get(position, (None, None))
        row: dict[str, Any] = {
            "id": one,
            "label": None
            if names is None
            else (names[0] if isinstance(task, MultiClass) else names),
            "source": "predicted" if names is None else ("asked" if pick_record else "told"),
            "holdout": bool(pick_record and pick_record.arm == "hold-out"),
            "round": pick_record.round if pick_record else None,
            "slot": pick_record.slot if pick_record else None,
            "arm": pick_record.arm if pick_record else None,
            "chance": round(pick_record.chance, 6) if pick_record else None,
            "annotator": by,
            "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else None,
        }
        said = (
            probs[position] if probs is not None else pick_record.predicted if pick_record else None
        )
        row |= _prediction(task, said)
        yield row


def _prediction(task: Any, probs: np.ndarray | None) -> dict[str, Any]:
    if probs is None:
        return {"prediction": None, "confidence": None}
    own = task.predicted(probs[None])[0]
    names = [task.classes[k] for k in np.flatnonzero(own)]
    sure = (
        float(probs.max())
        if isinstance(task, MultiClass)
        else float(np.abs(probs - 0.5).min() + 0.5)
    )
    return {
        "prediction": names[0] if isinstance(task, MultiClass) else names,
        "confidence": round(sure, 6),
    }


def export(
    run_state: RunState,
    out: Path,
    form: str,
    *,
    pool: Pool | None = None,
    probs: np.ndarray | None = None,
) -> int:
    """Write the labels to `out` in one of FORMATS; how many rows."""
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    if form in ("csv", "jsonl"):
        return write_rows(out, rows(run_state, probs))
    found = list(rows(run_state, probs))
    if form == "parquet":
        _parquet(found, run_state, out)
        return len(found)
    labelled = [row for row in found if row["label"] is not None]
    return (_folders if form == "folders" else _huggingface)(labelled, run_state, out, pool)


def check_fresh(out: Path) -> None:
    """Refuse what is not a new or an empty folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is {'not empty' if out.is_dir() else 'a file'}: name a new folder")


def _fresh(out: Path) -> None:
    check_fresh(out)
    out.mkdir(parents=True, exist_ok=True)


def _parquet(found: list[dict[str, Any]], run_state: RunState, out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(found, schema=_schema(run_state))
    with atomic_path(out) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _schema(run_state: RunState) -> Any:
    import pyarrow as pa

    label = pa.string() if isinstance(run_state.task, MultiClass) else pa.list_(pa.string())
    return pa.schema(
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


def _folders(found: list[dict[str, Any]], run_state: RunState, out: Path, pool: Pool | None) -> int:
    """A folder for each class with copies of its pictures; in a multi-label task a picture stands
    in each of its.

    Pictures that have vanished are left out.
    """
    if not isinstance(pool, ImageFolder):
        raise InputError(
            "folders can be made of a folder of images only: choose csv, jsonl, parquet or "
            "huggingface"
        )
    _fresh(out)
    place = {one: at for at, one in enumerate(pool.ids)}
    count = 0
    for row in found:
        if row["id"] not in place:
            continue
        file = Path(pool.file(place[row["id"]]))
        if not file.is_file():
            continue
        count += 1
        names = [row["label"]] if isinstance(row["label"], str) else row["label"] or ["(none)"]
        for name in names:
            target = out / _safe(name) / _safe(row["id"])
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, target)
    return count


def _safe(name: str) -> str:
    """A file name that stays inside its folder, different for different names."""
    kept = "".join(c if c not in '/\\:*?"<>|%\0' else f"%{ord(c):02x}" for c in name)
    kept = kept if kept.strip(".") else "%2e" * len(kept)
    if len(os.fsencode(kept)) <= 200:
        return kept
    short = os.fsencode(kept)[-150:].decode(
        errors="ignore"
    )  # the end holds the name and its ending
    return f"{blake2b(os.fsencode(name), digest_size=8).hexdigest()}-{short}"


def _huggingface(
    found: list[dict[str, Any]], run_state: RunState, out: Path, pool: Pool | None
) -> int:
    """A dataset folder: data/train-*.parquet with the examples in it, and a README with the
    classes.

    `datasets.load_dataset(folder)` reads it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if pool is None:
        raise InputError("the pool is needed to write examples")
    count = 0
    _fresh(out)
    (out / "data").mkdir()
    place = {one: at for at, one in enumerate(pool.ids)}
    task = run_state.task
    kind = pool.kind
    column = {"image": "image", "text": "text", "vector": "embedding"}[kind]
    types = {
        "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        "text": pa.string(),
        "vector": pa.list_(pa.float32()),
    }
    classes = list(task.classes)
    class_label = {"names": classes, "_type": "ClassLabel"}
    single = isinstance(task, MultiClass)
    features = {
        "id": {"dtype": "string", "_type": "Value"},
        column: {"_type": "Image"}
        if kind == "image"
        else {"dtype": "string", "_type": "Value"}
        if kind == "text"
        else {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"},
        "label" if single else "labels": class_label
        if single
        else {"feature": class_label, "_type": "List"},
    }
    schema = pa.schema(
        [
            ("id", pa.string()),
            (column, types[kind]),
            ("label", pa.int64()) if single else ("labels", pa.list_(pa.int64())),
        ],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    with pq.ParquetWriter(
        out / "data" / "train-00000-of-00001.parquet", schema, compression="zstd"
    ) as writer:
        for start in range(0, len(found), 256):
            part = [row for row in found[start : start + 256] if row["id"] in place]
            examples = pool.read([place[row["id"]] for row in part])
            table = [
                {"id": row["id"], column: _example(example, kind, row["id"])}
                | (
                    {"label": classes.index(row["label"])}
                    if single
                    else {"labels": [classes.index(n) for n in row["label"]]}
                )
                for row, example in zip(part, examples)
                if not isinstance(example, Unreadable)
            ]
            count += len(table)
            writer.write_table(pa.Table.from_pylist(table, schema=schema))
    (out / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: "
        "data/train-*\n---\n\n"
        f"{count} labelled examples, {task.kind}, classes: {', '.join(classes)}.\n",
        encoding="utf-8",
    )
    return count


def _example(example: Any, kind: str, one: str) -> Any:
    if kind == "text":
        return example
    if kind == "vector":
        return np.asarray(example, np.float32).tolist()
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(example).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": one}
