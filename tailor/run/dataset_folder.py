"""A folder that Hugging Face's `datasets` reads: labelled examples with their labels."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor.run.row_files import Row
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import pyarrow as pa

#: rows that are read from the pool and written together
ROWS_AT_ONCE = 256

#: the column that holds an example, by the pool's kind
COLUMNS = {"image": "image", "text": "text", "vector": "embedding"}

#: columns as `datasets` describes them
TEXT_FEATURE = {"dtype": "string", "_type": "Value"}
NUMBER_FEATURE = {"dtype": "float32", "_type": "Value"}
#: the column of an example, by the pool's kind
EXAMPLE_FEATURES = {
    "image": {"_type": "Image"},
    "text": TEXT_FEATURE,
    "vector": {"feature": NUMBER_FEATURE, "_type": "List"},
}

README = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---

{count} labelled examples, {kind}, classes: {classes}.
"""


def write_dataset(
    labelled: list[Row],
    task: Task,
    out: Path,
    pool: Pool,
) -> int:
    """Write rows with a label to a new folder: data/train-*.parquet with the examples in it, and a
    README with the classes. `datasets.load_dataset(folder)` reads it.

    Returns how many rows were written: examples that can't be read or have vanished are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data_folder = out / "data"
    data_folder.mkdir()
    schema = _schema(task, pool.kind)
    count = 0
    file = data_folder / "train-00000-of-00001.parquet"
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for records in _records(labelled, task, pool):
            count += len(records)
            table = pa.Table.from_pylist(records, schema=schema)
            writer.write_table(table)
    readme = README.format(count=count, kind=task.kind, classes=", ".join(task.classes))
    readme_file = out / "README.md"
    readme_file.write_text(readme, encoding="utf-8")
    return count


def _records(labelled: list[Row], task: Task, pool: Pool) -> Iterator[list[Row]]:
    """The rows of the dataset, in parts: pictures of a whole pool don't fit into memory."""
    index_of = {}
    for index, example_id in enumerate(pool.ids):
        index_of[example_id] = index
    present = [row for row in labelled if row["id"] in index_of]
    for start in range(0, len(present), ROWS_AT_ONCE):
        part = present[start : start + ROWS_AT_ONCE]
        indices = [index_of[row["id"]] for row in part]
        examples = pool.read(indices)
        records = []
        for row, example in zip(part, examples):
            if isinstance(example, Unreadable):
                continue
            record = _record(
                task,
                pool.kind,
                row,
                example,
            )
            records.append(record)
        yield records


def _schema(task: Task, kind: str) -> pa.Schema:
    """Columns for the example and its label, with what `datasets` wants to know of them."""
    import pyarrow as pa

    example_types = {
        "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        "text": pa.string(),
        "vector": pa.list_(pa.float32()),
    }
    class_feature: dict[str, Any] = {
        "names": list(task.classes),
        "_type": "ClassLabel",
    }
    if isinstance(task, MultiClass):
        label_column = "label"
        label_type = pa.int64()
        label_feature = class_feature
    else:
        label_column = "labels"
        label_type = pa.list_(pa.int64())
        label_feature = {"feature": class_feature, "_type": "List"}
    example_column = COLUMNS[kind]
    features = {
        "id": TEXT_FEATURE,
        example_column: EXAMPLE_FEATURES[kind],
        label_column: label_feature,
    }
    info = {"info": {"features": features}}
    fields = [
        ("id", pa.string()),
        (example_column, example_types[kind]),
        (label_column, label_type),
    ]
    return pa.schema(fields, metadata={"huggingface": json.dumps(info)})


def _record(
    task: Task,
    kind: str,
    row: Row,
    example: Any,
) -> Row:
    example_id = row["id"]
    label = row["label"]
    record = {
        "id": example_id,
        COLUMNS[kind]: _encoded(example, kind, example_id),
    }
    if isinstance(task, MultiClass):
        record["label"] = task.classes.index(label)
    else:
        record["labels"] = [task.classes.index(name) for name in label]
    return record


def _encoded(example: Any, kind: str, example_id: str) -> Any:
    """An example as its column holds it; a picture as PNG."""
    if kind == "text":
        return example
    if kind == "vector":
        return np.asarray(example, np.float32).tolist()
    from PIL import Image

    buffer = io.BytesIO()
    image = Image.fromarray(example)
    image.save(buffer, format="PNG")
    return {
        "bytes": buffer.getvalue(),
        "path": example_id,
    }
