"""The fenced blocks of a Markdown page, and how they are run.

A block that can't be run in a test has a comment right above it that says why:

    <!-- not run: needs a Ray cluster -->

`python` blocks run in one namespace a page; `print(...)  # text` must print that text. Of `console`
blocks the lines after `$` are run and what follows is compared; `...` stands for any text. `bash`
blocks are run without looking at what they print. A `toml` block with a title is written to the
file of that name; every one must be valid.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN = ("python", "console", "bash", "toml")
#: languages that only show something
SHOWN = ("text", "pycon", "json", "csv")
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*\Z")
TITLE = re.compile(r'title="([^"]+)"')
#: `print(...)  # what it prints; a remark`
PRINTED = re.compile(r"^\s*print\(.*\)\s+# ([^;\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    reason: str  # why it is not run, or ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    markdown = page.read_text(encoding="utf-8")
    blocks = []
    for fence in FENCE.finditer(markdown):
        before = markdown[: fence.start()]
        marked = NOT_RUN.search(before)
        title = TITLE.search(fence["info"])
        indent = fence["indent"]
        lines = [line.removeprefix(indent) for line in fence["text"].splitlines(keepends=True)]
        blocks.append(
            Block(
                page=page,
                line=before.count("\n") + 1,
                language=fence["language"],
                title=title[1] if title else "",
                text="".join(lines),
                reason=marked["reason"] if marked else "",
            )
        )
    return blocks


class PageRunner:
    """Runs the blocks of one page, in order, in the current folder.

    names  what the page's Python finds defined
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def run(self, block: Block) -> None:
        if block.language == "python":
            self.run_python(block)
        elif block.language == "console":
            self.run_console(block)
        elif block.language == "bash":
            for command in commands_of(block.text):
                run_command(command)
        elif block.language == "toml":
            tomllib.loads(block.text)
            if block.title:
                Path(block.title).write_text(block.text, encoding="utf-8")

    def run_python(self, block: Block) -> None:
        printed = io.StringIO()
        # Lines before the block are blank, so that an error names the page's own line.
        source = "\n" * block.line + block.text
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(block.page), "exec"), self.names)
        promised = [text.strip() for text in PRINTED.findall(block.text)]
        assert printed.getvalue().splitlines()[: len(promised)] == promised, str(block)

    def run_console(self, block: Block) -> None:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, promised = part.partition("\n")
            printed = run_command(command)
            if promised.strip():
                matches = doctest.OutputChecker().check_output(promised, printed, flags)
                assert matches, f"{block}\n$ {command}\n{printed}\nThe page says:\n{promised}"


def commands_of(text: str) -> list[str]:
    """The commands of a shell block, without comments; a line that ends in \\ goes on."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def run_command(command: str) -> str:
    """Run one line of shell -> what it prints. `tailor` runs in this process, which saves its
    start.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "tailor" and not {"|", ">", "<<<", "&&"} & set(words):
        return run_tailor(words[1:])
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stderr + done.stdout


def run_tailor(words: list[str]) -> str:
    from typer.testing import CliRunner

    from tailor.cli.app import app

    done = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, f"tailor {shlex.join(words)}\n{done.output}"
    return done.stderr + done.stdout  # progress is told before results
