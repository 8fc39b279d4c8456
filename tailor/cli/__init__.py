"""The `tailor` command. One file a command; each imports what it needs when it runs."""

from __future__ import annotations

import sys


def main() -> None:
    from tailor.cli.app import app
    from tailor.errors import TailorError

    try:
        app()
    except TailorError as error:
        print(f"tailor: {error}", file=sys.stderr)
        sys.exit(2)
