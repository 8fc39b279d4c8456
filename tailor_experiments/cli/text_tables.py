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
        # rich takes 80 columns for what is no terminal.
        console = Console(width=FILE_WIDTH)
    for table in tables:
        title: Text | None = Text(table.title)
        for columns in column_groups(table, console.width):
            shown = RichTable(title=title)
            for column in columns:
                heading = Text(table.columns[column])
                shown.add_column(heading, overflow="fold")
            for row in table.rows:
                cells = [Text(row[column]) for column in columns]
                shown.add_row(*cells)
            console.print(shown)
            title = None  # above the first part only
        note = Text(table.note, style="dim italic")
        console.print(note)


def column_groups(table: Table, width: int) -> list[list[int]]:
    """The columns in groups that fit beside each other, the first one in each: a number is never
    broken.
    """
    widths = []
    for column, heading in enumerate(table.columns):
        # A heading may be broken between words, a cell may not.
        texts = heading.split()
        texts += [row[column] for row in table.rows]
        longest = max(map(len, texts), default=0)
        widths.append(longest + FRAME)
    group = [0]
    groups = [group]
    for column in range(1, len(widths)):
        width_so_far = 1 + sum(widths[other] for other in group)
        is_full = width_so_far + widths[column] > width
        # A column that is too wide even beside the first alone stays there.
        if is_full and len(group) > 1:
            group = [0]
            groups.append(group)
        group.append(column)
    return groups
