"""A Hugging Face `datasets.Dataset`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tailor.errors import InputError
from tailor.pools import columns, convert
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique

_BATCH = 1024


class HuggingFace(Pool):
    """Rows of a `datasets.Dataset`: an Image column, embeddings or texts.

    Ids come from the key column, or are row numbers as text. Images are decoded here, not by the
    dataset, so that one broken picture is one Unreadable. A pool in memory can't be opened again by
    name: hand the dataset in again.

    column      the examples; found when only one column can be it
    key, label  the columns of ids and of labels (by itself `label` or `labels`)
    max_side    images are read no larger than this
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
        convert.check_decoding(max_side, threads)
        if not hasattr(dataset, "features") or not hasattr(dataset, "select_columns"):
            hint = (
                f": name a split, {', '.join(map(repr, dataset))}"
                if isinstance(dataset, dict)
                else ""
            )
            raise InputError(f"{type(dataset).__name__} is not a datasets.Dataset{hint}")
        if not hasattr(dataset, "__len__"):
            raise InputError(
                f"{type(dataset).__name__} is a stream: load it without streaming=True"
            )
        if len(dataset) == 0:
            raise InputError("the dataset is empty: give at least one row")
        self._schema = dataset.features.arrow_schema
        self.column, self.kind = columns.choose_column(self._schema, column, key, label)
        self.label = label
        self.max_side = max_side
        self.threads = threads
        self._dataset = dataset.with_format(None)
        self._examples = self._plain(self.column)
        self._keyless: set[int] = set()
        self._ids = [str(row) for row in range(len(dataset))] if key is None else self._keys(key)
        check_unique(self._ids)
        self._length: int | None = None

    def _plain(self, column: str) -> Any:
        """The column alone, its images left as bytes and path."""
        import datasets

        only = self._dataset.select_columns([column])
        if isinstance(only.features[column], datasets.Image):
            only = only.cast_column(column, datasets.Image(decode=False))
        return only

    def _values(self, column: str) -> Iterator[Any]:
        only = self._plain(column)
        for start in range(0, len(only), _BATCH):
            yield from only[start : start + _BATCH][column]

    def _keys(self, key: str) -> list[str]:
        ids = []
        for row, value in enumerate(self._values(key)):
            if value is None or value == "":
                self._keyless.add(row)
                value = f"row {row}"
            ids.append(str(value))
        return ids

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self))
        if not checked:
            return []
        rows = sorted(set(checked))
        values = dict(zip(rows, self._examples[rows][self.column]))
        threads = self.threads if self.kind == "image" else 1
        found = dict(
            zip(rows, convert.in_threads(self._example, [values[r] for r in rows], threads))
        )
        return [Unreadable("no key") if p in self._keyless else found[p] for p in checked]

    def _example(self, value: Any) -> Any:
        if self.kind == "text":
            return convert.text(value)
        if self.kind == "vector":
            return convert.vector(value, self._dimension())
        if isinstance(value, dict):
            value = value.get("bytes") if value.get("bytes") is not None else value.get("path")
        return convert.decode_image(value, self.max_side)

    def _dimension(self) -> int | None:
        if self._length is None:
            wholes = (convert.vector(value) for value in self._values(self.column))
            self._length = next((len(v) for v in wholes if not isinstance(v, Unreadable)), None)
        return self._length

    def labels(self) -> dict[str, Any] | None:
        column = columns.choose_label(self._schema.names, self.label)
        if column is None:
            return None
        names = columns.class_names(self._schema.metadata, column)
        named = (
            (one, convert.label(value, names))
            for one, value in zip(self._ids, self._values(column))
        )
        return {one: value for one, value in named if value is not None}

    def class_names(self) -> list[str] | None:
        """The classes in the order of the features, where they are named."""
        column = columns.choose_label(self._schema.names, self.label)
        return None if column is None else columns.class_names(self._schema.metadata, column)
