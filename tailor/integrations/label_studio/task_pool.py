"""The project's own tasks as a pool: their texts or pictures, copied into the run's folder."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from tailor.common.atomic_files import write_atomically
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.task_mirror import MirroredTask
from tailor.integrations.label_studio.transport import StudioError, StudioUnreachable
from tailor.pools.image_decoding import IMAGE_SUFFIXES

#: Where copies lie in the run's folder.
TEXTS = Path("label-studio", "texts.jsonl")
PICTURES = Path("label-studio", "pictures")


class TaskPool:
    """Copies what new tasks show. A copy stays as it was, even where the task changes or goes away.

    The id of an example is the number of its task, followed by the file's suffix for a picture.

    run  the run's folder
    say  called with a message about each task that has nothing to copy
    """

    def __init__(
        self,
        run: Path,
        studio: Studio,
        config: LabelConfig,
        say: Callable[[str], None],
    ) -> None:
        self.studio = studio
        self.config = config
        self._say = say
        self._failed: set[str] = set()  # not tried again in this process
        self._shows_text = config.shows == "text"
        if self._shows_text:
            self.path = run / TEXTS
            self._copied = self._copied_texts()
        else:
            self.path = run / PICTURES
            self._copied = self._copied_pictures()

    def settings(self) -> dict[str, Any]:
        """The [pool] section of the run's tailor.toml."""
        if self._shows_text:
            return {
                "path": TEXTS.as_posix(),
                "kind": "text",
                "key": "id",
                "column": "text",
            }
        return {
            "path": PICTURES.as_posix(),
            "kind": "image-folder",
        }

    def example_of(self, task_id: int, data: dict[str, Any]) -> str:
        """The id of the example that a task shows."""
        if self._shows_text:
            return str(task_id)
        link = str(data.get(self.config.key, ""))
        return f"{task_id}{_suffix(link)}"

    @property
    def size(self) -> int:
        return len(self._copied)

    def copy(self, tasks: Iterable[MirroredTask]) -> None:
        """Copy what tasks show that are not copied yet. Raises StudioUnreachable where Label Studio
        is away.
        """
        new_tasks: dict[str, MirroredTask] = {}
        # By number, so that the pool has the order in which the tasks were made.
        by_number = sorted(tasks, key=lambda task: task.id)
        for task in by_number:
            example = self.example_of(task.id, task.data)
            if example in self._copied:
                continue
            if example in self._failed:
                continue
            new_tasks[example] = task
        if not new_tasks:
            return
        if self._shows_text:
            self._add_texts(new_tasks)
        else:
            self._add_pictures(new_tasks)

    def _add_texts(self, new_tasks: dict[str, MirroredTask]) -> None:
        lines = []
        copied = []
        for example, task in new_tasks.items():
            text = task.data.get(self.config.key)
            if not isinstance(text, str) or not text:
                self._leave_out(example, "has no text")
                continue
            row = {
                "id": example,
                "text": text,
            }
            line = json.dumps(row)
            lines.append(f"{line}\n")
            copied.append(example)
        # In one write, so that a process that ends here leaves one broken line at the most.
        new_content = "".join(lines)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(new_content)
        self._copied.update(copied)

    def _add_pictures(self, new_tasks: dict[str, MirroredTask]) -> None:
        for example, task in new_tasks.items():
            try:
                content = self._picture(task)
            except StudioUnreachable:
                raise
            except StudioError as error:
                self._leave_out(example, f"has no picture: {error}")
                continue
            # Not forced to the disk: for many small pictures that takes longer than fetching them.
            write_atomically(self.path / example, content, durable=False)
            self._copied.add(example)

    def _picture(self, task: MirroredTask) -> bytes:
        key = self.config.key
        link = task.data.get(key)
        if not isinstance(link, str) or not link:
            raise StudioError(f"its {key} is {link!r}")
        if link.startswith("data:"):
            return _inline_content(link)
        scheme = urlsplit(link).scheme
        if scheme not in ("", "http", "https"):  # in cloud storage
            resolved = self.studio.tasks.resolved_data(task.id)
            link = resolved[key]
        return self.studio.links.fetch(link)

    def _leave_out(self, example: str, reason: str) -> None:
        task_id = example.partition(".")[0]
        self._say(f"task {task_id} {reason}; it is left out")
        self._failed.add(example)

    def _copied_pictures(self) -> set[str]:
        self.path.mkdir(parents=True, exist_ok=True)
        names = set()
        for file in self.path.iterdir():
            # Hidden: one that was being written when the process ended.
            if not file.name.startswith("."):
                names.add(file.name)
        return names

    def _copied_texts(self) -> set[str]:
        """A line that was being written when the process ended is taken away."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            end = content.rfind(b"\n") + 1
            file.truncate(end)
        ids = set()
        for line in content[:end].splitlines():
            record = json.loads(line)
            ids.add(record["id"])
        return ids


def _suffix(link: str) -> str:
    """The file suffix of the picture behind a link, as well as it can be told."""
    suffix = ""
    if link.startswith("data:image/"):
        media_type = link.removeprefix("data:image/")
        subtype = re.split(r"[;,+]", media_type, maxsplit=1)[0]
        suffix = f".{subtype}"
    else:
        # Before a query too: pictures behind a signed link end in .jpg?signature=...
        candidates = re.findall(r"\.[A-Za-z]{3,4}(?=$|[?&#])", link)
        if candidates:
            suffix = candidates[-1]
    suffix = suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        return suffix
    return ".jpg"


def _inline_content(link: str) -> bytes:
    """The bytes in a data: link. Raises StudioError where they are broken."""
    header, _, body = link.partition(",")
    if not header.endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise StudioError(f"its data: link is broken: {error}") from None
