"""A Hugging Face `datasets.Dataset`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tailor.errors import InputError
from tailor.pools import columns, convert
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    row_numbers,
)
from tailor.pools.image_decoding import check_decoding, decode_image, in_threads

#: Rows in memory at once while a whole column is read.
_BATCH_ROWS = 1024


class HuggingFace(Pool):
    """Rows of a `datasets.Dataset`: an Image column, embeddings or texts.

    Ids come from the key column, or are row numbers as text. Images are decoded here, not by the
    dataset, so that one broken picture is one Unreadable. The pool can't be opened again by name:
    hand the dataset in again.

    dataset     a `datasets.Dataset`
    column      the examples; found where only one column can be it
    key, label  the columns of ids and of labels (else `label` or `labels` where there is one)
    max_side    images are shrunk to at most this many pixels on the longer side
    threads     images decoded at once

    Raises InputError for a DatasetDict, a stream or an empty dataset, and where the columns are not
    clear.

    Cost: that of the dataset's rows, which Arrow maps into memory.

    When to use: you have a `datasets.Dataset` in memory. On disk, name its Parquet files instead.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        column: str | None = None,
        key: str | None = None,
        label: str | None = None,
        max_side: int | None = None,
        threads: int | None = None,
    ) -> None:
        check_decoding(max_side, threads)
        _check_dataset(dataset)
        self._schema = dataset.features.arrow_schema
        chosen_column, kind = columns.choose_column(
            self._schema,
            column,
            key,
            label,
        )
        self.column = chosen_column
        self.kind = kind
        self.label = label
        self.max_side = max_side
        self.threads = threads
        self._dataset = dataset.with_format(None)
        self._examples = self._undecoded(self.column)
        self._without_key = set[int]()  # positions
        if key is None:
            self._ids = row_numbers(0, len(dataset))
        else:
            keys = self._values(key)
            ids, keyless_rows = convert.key_ids(keys)
            self._ids = ids
            self._without_key.update(keyless_rows)
        check_unique(self._ids)
        self._vector_length: int | None = None

    def _undecoded(self, column: str) -> Any:
        """A dataset of this column alone, its images left as bytes and path."""
        import datasets

        single_column = self._dataset.select_columns([column])
        feature = single_column.features[column]
        if not isinstance(feature, datasets.Image):
            return single_column
        as_stored = datasets.Image(decode=False)
        return single_column.cast_column(column, as_stored)

    def _values(self, column: str) -> Iterator[Any]:
        single_column = self._undecoded(column)
        for start in range(0, len(single_column), _BATCH_ROWS):
            stop = start + _BATCH_ROWS
            batch = single_column[start:stop]
            yield from batch[column]

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self))
        if not checked:
            return []
        rows = sorted(set(checked))
        selected = self._examples[rows]
        values = selected[self.column]
        # Texts and vectors are converted faster than threads are started.
        threads: int | None = 1
        if self.kind == "image":
            threads = self.threads
        converted = in_threads(self._example, values, threads)
        examples = dict(zip(rows, converted))
        for position in self._without_key.intersection(rows):
            examples[position] = Unreadable("no key")
        return [examples[position] for position in checked]

    def _example(self, value: Any) -> Any:
        if self.kind == "text":
            return convert.text(value)
        if self.kind == "vector":
            length = self._common_length()
            return convert.vector(value, length)
        if isinstance(value, dict):
            content = value.get("bytes")
            # Of a picture that lies beside the dataset only the path is stored.
            if content is None:
                content = value.get("path")
            value = content
        return decode_image(value, self.max_side)

    def _common_length(self) -> int | None:
        """The length of the first readable vector, which all must have."""
        if self._vector_length is None:
            values = self._values(self.column)
            self._vector_length = convert.first_vector_length(values)
        return self._vector_length

    def _label_column(self) -> str | None:
        names = self._schema.names
        return columns.choose_label(names, self.label)

    def labels(self) -> dict[str, Any] | None:
        column = self._label_column()
        if column is None:
            return None
        values = self._values(column)
        class_names = self.class_names()
        return convert.labels_by_id(self._ids, values, class_names)

    def class_names(self) -> list[str] | None:
        """The classes in the order of the features, where they are named."""
        column = self._label_column()
        return columns.schema_class_names(self._schema, column)


def _check_dataset(dataset: Any) -> None:
    """Raises InputError unless it is a datasets.Dataset with at least one row."""
    type_name = type(dataset).__name__
    # Told by its attributes: `datasets` is slow to import, and whoever has one has it loaded.
    has_features = hasattr(dataset, "features")
    has_columns = hasattr(dataset, "select_columns")
    if not has_features or not has_columns:
        hint = ""
        # A DatasetDict holds a dataset for each split.
        if isinstance(dataset, dict):
            splits = ", ".join(map(repr, dataset))
            hint = f": name a split, {splits}"
        raise InputError(f"{type_name} is not a datasets.Dataset{hint}")
    if not hasattr(dataset, "__len__"):
        raise InputError(f"{type_name} is a stream: load it without streaming=True")
    if len(dataset) == 0:
        raise InputError("the dataset is empty: give at least one row")
