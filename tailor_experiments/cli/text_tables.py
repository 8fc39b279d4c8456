"""Tables of a report in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailor_experiments.comparison.table_format import Table

#: columns of text in a file, so that cells stay on one line
FILE_WIDTH = 200
#: a space on each side of a cell, and a line
FRAME = 3


def show_tables(tables: Sequence[Table]) -> None:
    """Print tables, broken into several where the terminal is too narrow."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    for table in tables:
        for number, columns in enumerate(column_groups(table, console.width)):
            shown = RichTable(title=None if number else Text(table.title))
            for column in columns:
                shown.add_column(Text(table.columns[column]), overflow="fold")
            for row in table.rows:
                shown.add_row(*(Text(row[column]) for column in columns))
            console.print(shown)
        console.print(Text(table.note, style="dim italic"))


def column_groups(table: Table, width: int) -> list[list[int]]:
    """The columns in groups that fit beside each other, the first one in each: a number is never
    broken.
    """
    widths = []
    for column, heading in enumerate(table.columns):
        # A heading may be broken between words, a cell may not.
        cells = [*heading.split(), *(row[column] for row in table.rows)]
        widths.append(max(map(len, cells), default=0) + FRAME)
    groups = [[0]]
    for column in range(1, len(widths)):
        width_so_far = 1 + sum(widths[other] for other in groups[-1])
        is_full = width_so_far + widths[column] > width
        if is_full and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(column)
    return groups
