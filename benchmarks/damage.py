"""A thousand random damages to a run: what happens to each.

python benchmarks/damage.py [CASES] [SEED]     # one JSON line, and what went wrong before it

A run of many answers is damaged in a random way: bits flipped, pages zeroed, files cut, the log or
the head lost, a file emptied; closed, or as kill -9 leaves it. Then it is read, exported and
written to. Allowed is that all of it is still there, or that every use is refused with one of our
errors, the damaged files staying byte for byte as they are.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tailor.errors import TailorError
from tailor.storage import SqliteStore

#: the files of a run
FILES = ("run.db", "run.db-wal", "run.db.head")
ANSWERS = 300
PAGE = 4096

Damage = Callable[[Path, random.Random], str]


def make_run(folder: Path, *, killed: bool) -> None:
    """A run of ANSWERS answers in a folder; killed: as a process leaves it that did not end."""
    folder.mkdir()
    work = folder / "work"
    work.mkdir()
    with SqliteStore(work / "run.db") as store:
        store.append("opened", {"settings": {}})
        store.add_examples([f"pictures/{number:05d}.jpg" for number in range(500)])
        for number in range(ANSWERS):
            data = bytes([number % 256]) * (3000 if number % 40 == 0 else 0)
            store.append("told", {"answers": [[number, [number % 3]]]}, data or None)
            if number == ANSWERS // 2:
                store.checkpoint()
        if killed:
            copy_files(work, folder)
    if not killed:
        copy_files(work, folder)
    shutil.rmtree(work)


def copy_files(source: Path, target: Path) -> None:
    for name in FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def flip_bit(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    bit = chance.randrange(len(content) * 8)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"bit {bit}"


def zero_page(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    start = chance.randrange(0, len(content), PAGE)
    end = min(start + PAGE, len(content))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)
    return f"page {start // PAGE}"


def cut(path: Path, chance: random.Random) -> str:
    length = chance.randrange(1, path.stat().st_size)
    path.write_bytes(path.read_bytes()[:length])
    return f"to {length} bytes"


def cut_last_page(path: Path, chance: random.Random) -> str:
    size = path.stat().st_size
    length = size - chance.randrange(1, min(PAGE, size))
    path.write_bytes(path.read_bytes()[:length])
    return f"to {length} bytes"


def empty(path: Path, chance: random.Random) -> str:
    path.write_bytes(b"")
    return ""


def lose(path: Path, chance: random.Random) -> str:
    path.unlink()
    return ""


DAMAGES: dict[str, Damage] = {
    "flip a bit": flip_bit,
    "zero a page": zero_page,
    "cut": cut,
    "cut in the last page": cut_last_page,
    "empty": empty,
    "lose": lose,
}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def read_all(folder: Path) -> tuple[list[tuple[object, ...]], list[str]]:
    with SqliteStore(folder / "run.db", readonly=True) as store:
        events = [(event.number, event.kind, event.body, event.data) for event in store.events()]
        return events, store.examples()


def outcome(folder: Path, whole: tuple[list[tuple[object, ...]], list[str]]) -> str:
    """What comes of a damaged run: "refused", "whole", or what must never be."""
    before = contents(folder)
    try:
        was_read = read_all(folder)
    except TailorError:
        was_read = None
    if was_read is not None and was_read != whole:
        return f"read as another run: {len(was_read[0])} events"
    try:
        with SqliteStore(folder / "run.db") as store:
            store.append("told", {"answers": []})
    except TailorError:
        # SQLite may make a log that is empty; what was there must be as it was.
        after = contents(folder)
        is_unchanged = {name: after.get(name) for name in before} == before
        return "refused" if is_unchanged else "refused, but changed"
    if was_read is None:
        return "not read, but written to"
    events, ids = read_all(folder)
    goes_on = events[:-1] == whole[0] and ids == whole[1]
    return "whole" if goes_on else "damaged further by writing"


def main(cases: int = 1000, seed: int = 0) -> dict[str, object]:
    """-> how many cases had which outcome."""
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    by_damage: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = {}
        for state in ("closed", "killed"):
            make_run(folder / state, killed=state == "killed")
            runs[state] = read_all(folder / state)
            for side in (folder / state).iterdir():
                if side.name.endswith("-shm") or side.stat().st_size == 0:
                    side.unlink()
        for case in range(cases):
            state = chance.choice(list(runs))
            damaged = folder / "damaged"
            damaged.mkdir()
            copy_files(folder / state, damaged)
            file = chance.choice(sorted(path.name for path in damaged.iterdir()))
            damage = chance.choice(list(DAMAGES))
            detail = DAMAGES[damage](damaged / file, chance)
            try:
                result = outcome(damaged, runs[state])
            except Exception as error:
                result = f"traceback: {error!r}"
            outcomes[result] += 1
            by_damage.setdefault(f"{damage}, {state} {file}", Counter())[result] += 1
            if result not in ("refused", "whole"):
                print(f"case {case}: {damage} {detail} of {state} {file}: {result}")
            shutil.rmtree(damaged)
    return {
        "cases": cases,
        "seed": seed,
        "outcomes": dict(outcomes),
        "by_damage": {name: dict(counts) for name, counts in sorted(by_damage.items())},
    }


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    print(json.dumps(main(*arguments)))
