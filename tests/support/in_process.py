"""The command without a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from unittest.mock import patch

from tailor.cli import run_command


def main_here(*words, columns=200):
    """What `tailor` does with its arguments, in this process: a new one would import torch first,
    for seconds.
    """
    argv = ["tailor", *map(str, words)]
    out = io.StringIO()
    err = io.StringIO()
    arguments = patch.object(sys, "argv", argv)
    terminal = patch.dict(os.environ, COLUMNS=str(columns))
    with arguments, terminal, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_command()
    return subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())
