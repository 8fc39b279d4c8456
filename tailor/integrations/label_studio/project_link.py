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
    """The link between a run and a project.

    url         Label Studio's address
    project     the number of the project
    created_at  tells the project from another one with the same number
    tasks       "pushed": made from a pool of ours; "theirs": the project's own
    secret      what Label Studio must show when it calls us
    """

    url: str
    project: int
    created_at: str
    tasks: str
    secret: str

    @classmethod
    def find(cls, run: Path) -> ProjectLink | None:
        """The link in a run's folder; None where there is none. Raises InputError where its file is
        broken.
        """
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
    def find_or_create(
        cls,
        run: Path,
        url: str,
        project: dict[str, Any],
        tasks: str,
    ) -> ProjectLink:
        """The link of a run to this project, created where the run has none. The address of Label
        Studio may have changed since.

        project  its settings, as Studio.describe gives them

        Raises InputError where the run belongs to another project.
        """
        number = project["id"]
        created_at = project["created_at"]
        existing = cls.find(run)
        if existing is None:
            project_link = cls(
                url=url,
                project=number,
                created_at=created_at,
                tasks=tasks,
                secret=secrets.token_urlsafe(32),
            )
        elif existing.project != number or existing.created_at != created_at:
            raise InputError(
                f"the run in {run} belongs to project {existing.project} at {existing.url}, not to "
                f"project {number} ({project['title']!r}) at {url}: name another --run"
            )
        else:
            project_link = replace(existing, url=url)
        if project_link != existing:
            content = json.dumps(asdict(project_link), indent=1)
            write_atomically(run / FILE, content, private=True)  # it holds a secret
        return project_link
