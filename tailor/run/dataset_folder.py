"""A folder that Hugging Face's `datasets` reads: labelled examples with their labels."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.pools.base import Pool, Unreadable
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import pyarrow as pa

#: rows that are read from the pool and written together
ROWS_AT_ONCE = 256

#: the column that holds an example, by the pool's kind
COLUMNS = {"image": "image", "text": "text", "vector": "embedding"}

README = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---

{count} labelled examples, {kind}, classes: {classes}.
"""


def write_dataset(labelled: list[dict[str, Any]], task: Task, out: Path, pool: Pool) -> int:
    """Write rows with a label to a new folder: data/train-*.parquet with the examples in it, and a
    README with the classes. `datasets.load_dataset(folder)` reads it.

    Returns how many rows were written: examples that can't be read or have vanished are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    (out / "data").mkdir()
    schema = _schema(task, pool.kind)
    index_of = {example_id: index for index, example_id in enumerate(pool.ids)}
    count = 0
    file = out / "data" / "train-00000-of-00001.parquet"
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(labelled), ROWS_AT_ONCE):
            part = labelled[start : start + ROWS_AT_ONCE]
            part = [row for row in part if row["id"] in index_of]
            examples = pool.read([index_of[row["id"]] for row in part])
            records = [
                _record(task, pool.kind, row, example)
                for row, example in zip(part, examples)
                if not isinstance(example, Unreadable)
            ]
            count += len(records)
            writer.write_table(pa.Table.from_pylist(records, schema=schema))
    readme = README.format(count=count, kind=task.kind, classes=", ".join(task.classes))
    (out / "README.md").write_text(readme, encoding="utf-8")
    return count


def _schema(task: Task, kind: str) -> pa.Schema:
    """Columns for the example and its label, with what `datasets` wants to know of them."""
    import pyarrow as pa

    text_feature = {"dtype": "string", "_type": "Value"}
    number_feature = {"dtype": "float32", "_type": "Value"}
    example_types = {
        "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        "text": pa.string(),
        "vector": pa.list_(pa.float32()),
    }
    example_features = {
        "image": {"_type": "Image"},
        "text": text_feature,
        "vector": {"feature": number_feature, "_type": "List"},
    }
    class_feature: dict[str, Any] = {"names": list(task.classes), "_type": "ClassLabel"}
    if isinstance(task, MultiClass):
        label_field = ("label", pa.int64())
        label_feature = class_feature
    else:
        label_field = ("labels", pa.list_(pa.int64()))
        label_feature = {"feature": class_feature, "_type": "List"}
    features = {
        "id": text_feature,
        COLUMNS[kind]: example_features[kind],
        label_field[0]: label_feature,
    }
    return pa.schema(
        [("id", pa.string()), (COLUMNS[kind], example_types[kind]), label_field],
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )


def _record(task: Task, kind: str, row: dict[str, Any], example: Any) -> dict[str, Any]:
    record = {"id": row["id"], COLUMNS[kind]: _encoded(example, kind, row["id"])}
    if isinstance(task, MultiClass):
        record["label"] = task.classes.index(row["label"])
    else:
        record["labels"] = [task.classes.index(name) for name in row["label"]]
    return record


def _encoded(example: Any, kind: str, example_id: str) -> Any:
    """An example as its column holds it; a picture as PNG."""
    if kind == "text":
        return example
    if kind == "vector":
        return np.asarray(example, np.float32).tolist()
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(example).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": example_id}
