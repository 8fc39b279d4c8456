"""What new tasks show: texts of the pool, or its pictures, uploaded to Label Studio."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tailor.integrations.label_studio.studio_tasks import StudioTasks
from tailor.pools.base import Pool, Unreadable

if TYPE_CHECKING:
    from tailor.web.examples import Examples

#: Pixels of the longer side of an uploaded picture, at most.
LARGEST_SIDE = 1600
#: Characters of the name of an uploaded file.
LONGEST_NAME = 80
VANISHED = Unreadable("it has vanished from the pool")
#: What is shown, or the Unreadable in its place, by example.
Contents = dict[str, Any]


class TaskContents:
    """Reads examples from the pool for tasks, and uploads pictures.

    say  called with a message about each example that can't be shown
    """

    def __init__(
        self,
        pool: Pool,
        studio_tasks: StudioTasks,
        say: Callable[[str], None],
    ) -> None:
        self._pool = pool
        self._studio_tasks = studio_tasks
        self._say = say
        self._reported: set[str] = set()  # examples that can't be shown
        self._examples: Examples | None = None

    def get(self, examples: Sequence[str], shows: str) -> dict[str, str]:
        """By example: the text itself, or the path of the uploaded picture. What can't be read is
        left out, and the user is told once.

        shows  "text" or "image"
        """
        if shows == "text":
            contents = self._texts(examples)
            return self._readable(contents)
        contents = self._pictures(examples)
        pictures = self._readable(contents)
        if not pictures:
            return {}
        uploads = list(pictures.values())
        paths = self._studio_tasks.upload(uploads)
        return dict(zip(pictures, paths))

    def _readable(self, contents: Contents) -> Contents:
        """Those that can be shown; of each of the others the user is told once."""
        readable: Contents = {}
        for example, content in contents.items():
            if not isinstance(content, Unreadable):
                readable[example] = content
            elif example not in self._reported:
                self._say(f"{example} can't be shown: {content.reason}.")
                self._reported.add(example)
        return readable

    def _texts(self, examples: Sequence[str]) -> Contents:
        wanted = set(examples)
        positions: dict[str, int] = {}
        for position, example in enumerate(self._pool.ids):
            if example in wanted:
                positions[example] = position
        texts: Contents = dict.fromkeys(examples, VANISHED)
        contents = self._pool.read(list(positions.values()))
        texts.update(zip(positions, contents))
        return texts

    def _pictures(self, examples: Sequence[str]) -> Contents:
        """By example: (file name, content, media type), or Unreadable. Pictures are decoded and
        encoded anew, so that nothing but pixels gets through.
        """
        from tailor.web.examples import EncodedPicture, Examples

        if self._examples is None:
            self._examples = Examples(self._pool, memory=0)
        pictures: Contents = {}
        for example in examples:
            picture = self._examples.picture(example, LARGEST_SIDE)
            if not isinstance(picture, EncodedPicture):
                pictures[example] = picture or VANISHED
                continue
            pictures[example] = (
                _file_name(example, picture.media_type),
                picture.content,
                picture.media_type,
            )
        return pictures


def _file_name(example: str, media_type: str) -> str:
    """A name for the upload of a picture that every file system takes.

    >>> _file_name("old photos/Zoë 1.tif", "image/jpeg")
    'Zo__1.jpeg'
    """
    base_name = example.rsplit("/", 1)[-1]
    stem = base_name.rsplit(".", 1)[0]
    safe_stem = re.sub(r"[^A-Za-z0-9_-]", "_", stem)
    short_stem = safe_stem[:LONGEST_NAME]
    _, _, suffix = media_type.rpartition("/")
    return f"{short_stem}.{suffix}"
