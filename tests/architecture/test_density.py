"""Lines of code hold no more than those of packages that read well (CONTRIBUTING has the table)."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

HOME = Path(__file__).parents[2]
density = run_path(str(HOME / "tools" / "density.py"))


@pytest.mark.parametrize("package", ["tailor", "tailor_experiments"])
def test_a_line_holds_no_more_than_elsewhere(package):
    figures = density["measure"](HOME / package)
    assert float(figures["nodes a line of code"]) <= 7.43
    assert float(figures["nodes in the median function"]) <= 53


PLAIN = """
def f(x):
    return x + 1
"""
WORDY = """
'''Words.'''


def f(x):
    '''More words.'''

    # why
    return x + 1
"""


@pytest.mark.parametrize("text", [PLAIN, WORDY])
def test_blank_lines_comments_and_docstrings_are_no_code(tmp_path, text):
    (tmp_path / "module.py").write_text(text)
    figures = density["measure"](tmp_path)
    # return, sum, name, what the name is used for, plus, constant
    assert figures["nodes a line within functions"] == "6.00"
