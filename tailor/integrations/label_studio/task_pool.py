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
from tailor.integrations.label_studio.client import Studio, StudioError, Unreachable
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.task_mirror import MirroredTask
from tailor.pools.image_decoding import IMAGE_SUFFIXES

#: in the run's folder
TEXTS = Path("label-studio", "texts.jsonl")
PICTURES = Path("label-studio", "pictures")


class TaskPool:
    """Copies what new tasks show. What is copied stays as it was, even where the task changes or
    goes away.

    A task's id is the example's; a picture's has the file's suffix too.
    """

    def __init__(
        self, run: Path, studio: Studio, config: LabelConfig, say: Callable[[str], None]
    ) -> None:
        self.studio = studio
        self.config = config
        self._say = say
        self.path = run / (TEXTS if config.shows == "text" else PICTURES)
        self._failed: set[str] = set()  # tried once in this process
        self._have = self._read()

    def settings(self) -> dict[str, Any]:
        """The [pool] section of the run's tailor.toml."""
        if self.config.shows == "text":
            return {"path": TEXTS.as_posix(), "kind": "text", "key": "id", "column": "text"}
        return {"path": PICTURES.as_posix(), "kind": "image-folder"}

    def example_of(self, task: int, data: dict[str, Any]) -> str:
        return (
            str(task)
            if self.config.shows == "text"
            else f"{task}{_suffix(str(data.get(self.config.key, '')))}"
        )

    def copy(self, tasks: Iterable[MirroredTask]) -> int:
        """Copy what is new -> how many there were."""
        new = [(self.example_of(t.id, t.data), t) for t in sorted(tasks, key=lambda t: t.id)]
        new = [
            (one, task) for one, task in new if one not in self._have and one not in self._failed
        ]
        add = self._add_texts if self.config.shows == "text" else self._add_pictures
        return add(new) if new else 0

    @property
    def size(self) -> int:
        return len(self._have)

    def _add_texts(self, new: list[tuple[str, MirroredTask]]) -> int:
        found = {one: task.data.get(self.config.key) for one, task in new}
        self._fail(
            {one for one, text in found.items() if not isinstance(text, str) or not text},
            "has no text",
        )
        lines = [
            json.dumps({"id": one, "text": text}) + "\n"
            for one, text in found.items()
            if one not in self._failed
        ]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))
        self._have.update(found.keys() - self._failed)
        return len(lines)

    def _add_pictures(self, new: list[tuple[str, MirroredTask]]) -> int:
        before = len(self._have)
        for one, task in new:
            try:
                content = self._picture(task)
            except Unreachable:
                raise
            except StudioError as error:
                self._fail({one}, f"has no picture: {error}")
                continue
            # Not forced to the disk: for many small pictures that takes longer than fetching them.
            write_atomically(self.path / one, content, durable=False)
            self._have.add(one)
        return len(self._have) - before

    def _picture(self, task: MirroredTask) -> bytes:
        link = task.data.get(self.config.key)
        if not isinstance(link, str) or not link:
            raise StudioError(f"its {self.config.key} is {link!r}")
        if link.startswith("data:"):
            return _inline(link)
        if urlsplit(link).scheme not in ("", "http", "https"):  # in cloud storage
            link = self.studio.resolved(task.id)[self.config.key]
        return self.studio.fetch(link)

    def _fail(self, examples: set[str], why: str) -> None:
        for one in sorted(examples - self._failed):
            self._say(f"task {one.partition('.')[0]} {why}; it is left out")
        self._failed |= examples

    def _read(self) -> set[str]:
        """What was copied before. A line that was being written when the process ended is taken
        away.
        """
        if self.config.shows == "image":
            self.path.mkdir(parents=True, exist_ok=True)
            return {file.name for file in self.path.iterdir() if not file.name.startswith(".")}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            file.truncate(len(whole))
        return {json.loads(line)["id"] for line in whole.splitlines()}


def _suffix(link: str) -> str:
    """Of the picture behind a link, as well as it can be told."""
    if link.startswith("data:image/"):
        found = "." + re.split(r"[;,+]", link[len("data:image/") :], maxsplit=1)[0].lower()
    else:
        names = re.findall(r"\.[A-Za-z]{3,4}(?=$|[?&#])", link)
        found = names[-1].lower() if names else ""
    return found if found in IMAGE_SUFFIXES else ".jpg"


def _inline(link: str) -> bytes:
    head, _, body = link.partition(",")
    try:
        return (
            base64.b64decode(body, validate=True)
            if head.endswith(";base64")
            else unquote_to_bytes(body)
        )
    except binascii.Error as error:
        raise StudioError(f"its data: link is broken: {error}") from None
