"""The `tailor` command. One file a command; each imports what it needs when it runs."""

from __future__ import annotations

import sys


def main() -> None:
    from tailor.cli.app import app
    from tailor.cli.common import tell_of_compiling
    from tailor.errors import TailorError

    tell_of_compiling()
    try:
        app()
    except TailorError as error:
        from tailor.cli.common import printable

        print(printable(f"tailor: {error}"), file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a folder that is not there, a full disk
        print(f"tailor: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        sys.exit(2)
