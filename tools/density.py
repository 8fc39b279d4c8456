"""How much stands in a line: what a reader has to take in at once.

    python tools/density.py [FOLDER...]        by default tailor; other packages for comparison

Syntax-tree nodes for each line of functions' bodies and in the median function, attributes assigned
in tuples (`self.a, self.b = x, y`), lines that are comments, modules at the package's root.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of every function, its docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            yield node.body[1:] if ast.get_docstring(node) is not None else node.body


def count_nodes(statements: list[ast.stmt]) -> int:
    return sum(1 for statement in statements for _ in ast.walk(statement))


def count_lines(statements: list[ast.stmt]) -> int:
    return sum(
        (statement.end_lineno or statement.lineno) - statement.lineno + 1
        for statement in statements
    )


def attribute_targets(tree: ast.AST) -> Iterator[bool]:
    """For each attribute that is assigned: whether that happens in a tuple."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute):
                yield False
            elif isinstance(target, ast.Tuple):
                yield from (True for part in target.elts if isinstance(part, ast.Attribute))


def count_comments(text: str) -> int:
    """Lines with nothing but a comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type == tokenize.COMMENT and token.line.strip().startswith("#") for token in tokens
    )


def measure(folder: Path) -> dict[str, str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    trees = [ast.parse(text) for text in texts]
    functions = [statements for tree in trees for statements in bodies(tree)]
    nodes = [count_nodes(statements) for statements in functions]
    lines = sum(count_lines(statements) for statements in functions)
    in_tuples = [packed for tree in trees for packed in attribute_targets(tree)]
    comments = sum(count_comments(text) for text in texts) / sum(
        len(text.splitlines()) for text in texts
    )
    return {
        "nodes a line": f"{sum(nodes) / lines:.1f}",
        "nodes in the median function": f"{statistics.median(nodes):.0f}",
        "attributes assigned in tuples": f"{statistics.mean(in_tuples or [False]):.0%}",
        "lines that are comments": f"{comments:.1%}",
        "modules at the root": str(len(list(folder.glob("*.py")))),
    }


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [Path(__file__).parents[1] / "tailor"]
    columns = [measure(folder) for folder in folders]
    print("|", " | ".join(["", *(folder.name for folder in folders)]), "|")
    print("|---" * (len(folders) + 1) + "|")
    for figure in columns[0]:
        print("|", " | ".join([figure, *(column[figure] for column in columns)]), "|")


if __name__ == "__main__":
    main()
