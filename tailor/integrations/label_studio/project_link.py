"""What a run remembers of the Label Studio project that it belongs to."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tailor.common.atomic_files import write_atomically
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
            content = json.dumps(asdict(project_link), indent=1)
            write_atomically(run / FILE, content, private=True)  # it holds a secret
        return project_link
