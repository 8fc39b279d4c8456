"""What a run remembers of the Label Studio project that it belongs to."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tailor.errors import InputError

FILE = "label-studio.json"


@dataclass(frozen=True)
class ProjectLink:
    """Between a run and a project. The secret is what Label Studio must show when it calls us."""

    url: str
    project: int
    created_at: str  # tells a project from another one with the same number
    tasks: str  # "pushed": from a pool of ours; "theirs": the project's own
    secret: str

    @classmethod
    def find(cls, run: Path) -> ProjectLink | None:
        path = run / FILE
        if not path.exists():
            return None
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{path} can't be read ({error}): remove it, and connect again"
            ) from None

    @classmethod
    def tie(cls, run: Path, url: str, described: dict[str, Any], tasks: str) -> ProjectLink:
        """The bond of a run, made where there is none; the address of Label Studio may change."""
        known = cls.find(run)
        if known is None:
            project_link = cls(
                url, described["id"], described["created_at"], tasks, secrets.token_urlsafe(32)
            )
        elif (known.project, known.created_at) != (described["id"], described["created_at"]):
            raise InputError(
                f"the run in {run} belongs to project {known.project} at {known.url}, not to "
                f"project {described['id']} "
                f"({described['title']!r}) at {url}: name another --run"
            )
        else:
            project_link = replace(known, url=url)
        if project_link != known:
            _write(run / FILE, json.dumps(asdict(project_link), indent=1))
        return project_link


def _write(path: Path, text: str) -> None:
    """Readable by its owner alone; whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with open(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
    os.replace(part, path)
