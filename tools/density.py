"""How much stands in a line: what a reader has to take in at once.

    python tools/density.py [FOLDER...]        by default tailor; other packages for comparison

Prints a Markdown table with a column for each folder. It counts, over all .py files below it:

nodes a line of code           nodes of the syntax tree (as `ast` has them: names, calls,
                               operators, and what they are used for) over the lines of code:
                               blank lines, comments and docstrings are left out
nodes a line within functions  the same of the functions' bodies, without signatures
nodes in the median function   nodes of the body of the function in the middle
attributes assigned in tuples  of all attributes that are assigned, those in a tuple, as in
                               `self.a, self.b = x, y`
lines that are comments        of all lines, those with nothing but a comment
modules at the root            .py files directly in the folder
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

DEFAULT = Path(__file__).parents[1] / "tailor"
#: tokens that a line of code needs more than
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def function_bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of every function, its docstring left out."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        has_docstring = ast.get_docstring(node) is not None
        yield node.body[1:] if has_docstring else node.body


def count_nodes(statements: Sequence[ast.stmt]) -> int:
    """All nodes of the statements, themselves included."""
    count = 0
    for statement in statements:
        count += sum(1 for _ in ast.walk(statement))
    return count


def lines_of(statement: ast.stmt) -> set[int]:
    """The numbers of the lines that a statement takes."""
    last = statement.end_lineno or statement.lineno
    return set(range(statement.lineno, last + 1))


def docstring_lines(tree: ast.AST) -> set[int]:
    """The numbers of the lines that docstrings take."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    numbers: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            numbers |= lines_of(node.body[0])
    return numbers


def code_lines(text: str, tree: ast.AST) -> set[int]:
    """The numbers of the lines that hold code: no blank line, no comment, no docstring."""
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            numbers.update(range(token.start[0], token.end[0] + 1))
    return numbers - docstring_lines(tree)


def attribute_targets(tree: ast.AST) -> Iterator[bool]:
    """For each attribute that is assigned: whether that happens in a tuple."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute):
                yield False
            elif isinstance(target, ast.Tuple):
                for element in target.elts:
                    if isinstance(element, ast.Attribute):
                        yield True


def count_comments(text: str) -> int:
    """Lines with nothing but a comment."""
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_alone = token.line.strip().startswith("#")
        if token.type == tokenize.COMMENT and is_alone:
            count += 1
    return count


def measure(folder: Path) -> dict[str, str]:
    """The figures of a folder, by name."""
    all_nodes = 0
    all_code = 0
    node_counts: list[int] = []
    body_code = 0
    in_tuples: list[bool] = []
    comments = 0
    all_lines = 0
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        code = code_lines(text, tree)
        all_nodes += sum(1 for _ in ast.walk(tree))
        all_code += len(code)
        for statements in function_bodies(tree):
            node_counts.append(count_nodes(statements))
            for statement in statements:
                body_code += len(lines_of(statement) & code)
        in_tuples += attribute_targets(tree)
        comments += count_comments(text)
        all_lines += len(text.splitlines())
    packed_share = statistics.mean(in_tuples) if in_tuples else 0.0
    return {
        "nodes a line of code": f"{all_nodes / all_code:.2f}",
        "nodes a line within functions": f"{sum(node_counts) / body_code:.2f}",
        "nodes in the median function": f"{statistics.median(node_counts):.0f}",
        "attributes assigned in tuples": f"{packed_share:.0%}",
        "lines that are comments": f"{comments / all_lines:.1%}",
        "modules at the root": str(len(list(folder.glob("*.py")))),
    }


def table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [DEFAULT]
    figures = [measure(folder) for folder in folders]
    print(table_line(["", *(folder.name for folder in folders)]))
    print("|---" * (len(folders) + 1) + "|")
    for name in figures[0]:
        print(table_line([name, *(column[name] for column in figures)]))


if __name__ == "__main__":
    main()
