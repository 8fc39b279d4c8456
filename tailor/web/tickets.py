"""Proof that an example was handed to someone: leases end with the server, and answers that a
browser has kept meanwhile still count.
"""

from __future__ import annotations

import hmac
import json
import secrets
from hashlib import sha256
from pathlib import Path

from tailor.web.private_files import locked_file, read_private, write_private

FILE = Path("web") / "tickets.json"  # in the project's folder
KEY_BYTES = 32


class Tickets:
    """Issues and checks tickets of one project. A ticket is worth nothing to anybody else, and for
    no other example.
    """

    def __init__(self, folder: Path) -> None:
        self._key = _read_or_make_key(folder / FILE)

    def issue(self, annotator: str, id: str) -> str:
        """The ticket of an example that is handed to an annotator."""
        # As JSON: no name can end where an id begins.
        message = json.dumps([annotator, id]).encode()
        return hmac.new(self._key, message, sha256).hexdigest()

    def is_valid(self, annotator: str, id: str, ticket: str | None) -> bool:
        """Whether this is the ticket of this annotator and example."""
        if ticket is None:
            return False
        expected = self.issue(annotator, id).encode()
        # In the same time, wherever they differ.
        return hmac.compare_digest(ticket.encode(errors="replace"), expected)


def _read_or_make_key(path: Path) -> bytes:
    with locked_file(path):
        key: str | None = read_private(path).get("key")
        if key is None:
            key = secrets.token_hex(KEY_BYTES)
            write_private(path, {"key": key})
    return bytes.fromhex(key)
