"""Endurance: many annotators at one server that is killed, whose database crashes, whose disk fills
and whose clock is stepped, while an owner changes the classes. Nothing acknowledged may be lost.

    python benchmarks/soak.py [--store sqlite postgresql] [--annotators 50] [--minutes 10]
    python benchmarks/soak.py --only-faults --every 5 [--store sqlite postgresql]
    python benchmarks/soak.py --kills 1000 [--store sqlite postgresql]

`tailor label` runs in a process of its own with a user for every annotator; the annotators are HTTP
clients on loopback in this process, and send again what was not acknowledged, as the page does.
--minutes are spent in four phases: 10% to warm up and 30% at a person's pace, 20% without pause,
40% in fast motion with a fault every few seconds. --kills instead kills the server so often at
random moments, also while it starts. After every fault, and in the end, each acknowledged answer is
looked up in the store. Prints one JSON object a phase, and appends it to --out; exits with 1 where
anything is wrong.

The run lies on a disk of its own that can be filled, which takes the right to mount one: without
it this fault is left out, and the rows say so. Needs Linux, and
pip install 'tailor-active-learning[web,postgres]' httpx.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotators import milliseconds
from coordinator import begin
from soak_checks import Checker
from soak_faults import SmallDisk, crash, database_on, small_disk
from soak_people import SECRET, WAIT, EnduringAnnotator, Owner, SoakLedger
from soak_server import LabelServer

from tailor.testing.postgres import Server
from tailor.web.users import Users

LEASE = 30.0  # seconds
CALM_AFTER = 5.0  # seconds after a fault until times count as undisturbed again
CLOCK_STEPS = (3600.0, -7200.0, 86400.0, -82800.0)  # seconds; together none
FASTEST = 1e6  # times a person's pace: without pause
#: seconds that a full disk stays full, and in which it should be felt
FULL_SECONDS = 3.0
FELT_WITHIN = 20.0
PATIENCE = 120.0  # seconds until a server that takes no answer counts as stuck


@dataclass(frozen=True)
class Phase:
    """seconds: how long; speed: of the fast motion; every: seconds between two faults, None for
    none; kills: so many instead, after a server's life of `life` seconds on average
    """

    name: str
    speed: float
    seconds: float = 0.0
    every: float | None = None
    kills: int = 0
    life: float = 1.0


class Soak:
    """A run, its server, its people, and what is done to them."""

    def __init__(
        self,
        given: argparse.Namespace,
        disk: SmallDisk,
        folder: Path,
        database: Server | None,
    ) -> None:
        self.disk = disk
        self.database = database
        self.chance = random.Random(given.seed)
        run = disk.folder / "run"
        run.mkdir()
        url = database.url() if database is not None else None
        truth = begin(run, given.examples, given.classes, given.batch, url)
        users = Users(run)
        names = [f"annotator {number}" for number in range(given.annotators)]
        for name in ("owner", *names):
            users.add(name, SECRET)
        self.ledger = SoakLedger()
        self.checker = Checker(run, self.ledger)
        self.server = LabelServer(run, folder, "--lease", str(LEASE), "--trust")
        self.people = [
            EnduringAnnotator(
                name,
                self.server.url,
                lambda id: str(truth[int(id)]),
                self.ledger,
                speed=1.0,
                lease=LEASE,
            )
            for name in names
        ]
        self.owner = Owner(self.server.url, self.ledger, given.edit_every)
        self.did: Counter[str] = Counter()
        self.disturbed: list[tuple[float, float]] = []
        self.starts: list[float] = []  # seconds until somebody listened

    # ------------------------------------------------------------------ a phase

    async def pass_through(self, phase: Phase) -> dict[str, Any]:
        """People at work, and faults -> the phase's figures."""
        over = asyncio.Event()
        self.did.clear()
        self.disturbed.clear()
        self.starts.clear()
        if self.server.pid is None:
            await self.start()
        for annotator in self.people:
            annotator.speed = phase.speed
            annotator.hand = {}
        answers = len(self.ledger.acknowledged)
        load = os.getloadavg()[0]
        started = time.monotonic()
        work = [asyncio.create_task(annotator.label(over)) for annotator in self.people]
        work.append(asyncio.create_task(self.owner.edit_classes(over)))
        memory: list[int] = []
        watch = asyncio.create_task(self._watch_memory(memory))
        if phase.kills:
            await self._kill_often(phase)
        else:
            await self._disturb(phase, started + phase.seconds)
        over.set()
        await asyncio.gather(*work)
        watch.cancel()
        took = time.monotonic() - started
        await asyncio.to_thread(self.checker.check)
        acknowledged = len(self.ledger.acknowledged) - answers
        row = {
            "phase": phase.name,
            "took_s": round(took, 1),
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
            "acknowledged": acknowledged,
            "per_second": round(acknowledged / took, 1),
            "faults": dict(self.did),
            "ms": milliseconds(self._times(started)),
        }
        if phase.every is not None:
            row["ms_undisturbed"] = milliseconds(self._undisturbed(started))
        if self.starts:
            row["start_s"] = {"median": _median(self.starts), "max": round(max(self.starts), 2)}
        if not phase.kills and phase.every is None:
            row["memory_mib"] = memory_figures(memory)
        return row

    def _times(self, since: float) -> list[tuple[float, float]]:
        return [
            (asked, seconds)
            for kind in ("next", "answer")
            for asked, seconds in self.ledger.times[kind]
            if asked >= since
        ]

    def _undisturbed(self, since: float) -> list[tuple[float, float]]:
        """Requests that no fault met, nor the seconds after it."""
        return [
            (asked, seconds)
            for asked, seconds in self._times(since)
            if not any(start < asked + seconds and asked < end for start, end in self.disturbed)
        ]

    async def _watch_memory(self, samples: list[int]) -> None:
        while True:
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{self.server.pid}/status").read_text()
                samples.append(int(status.partition("VmRSS:")[2].split()[0]) // 1024)
            await asyncio.sleep(1)

    async def finish(self) -> dict[str, Any]:
        """Compare what the server counts with the store; then end it."""
        reply = await self.owner.persist("overview", "GET", "/api/overview")
        counted = {entry["name"]: entry["count"] for entry in reply.json()["counts"]}
        for person in (*self.people, self.owner):
            await person.client.aclose()
        return await asyncio.to_thread(self.checker.finish, counted)

    # ------------------------------------------------------------------ faults

    async def start(self) -> None:
        started = time.monotonic()
        await asyncio.to_thread(self.server.start)
        while not await asyncio.to_thread(self.server.answers):
            if not self.server.is_alive():
                raise RuntimeError(f"the server ended: {self.server.log.read_text()[-2000:]}")
            await asyncio.sleep(0.02)
        self.starts.append(time.monotonic() - started)

    async def _kill_often(self, phase: Phase) -> None:
        """At random moments: one in four while the server starts or just after, the others from its
        first answer on.
        """
        for number in range(phase.kills):
            if number % 4 == 3:
                await asyncio.sleep(2 * self.chance.random() * _median(self.starts))
                self.did["kills as it started"] += 1
            else:
                await self._wait_for_answer()
                await asyncio.sleep(self.chance.expovariate(1 / phase.life))
            await asyncio.to_thread(self.server.kill)
            self.ledger.killed()
            self.did["kill"] += 1
            await asyncio.to_thread(self.checker.check)
            if number % 4 == 2 and number + 1 < phase.kills:
                await asyncio.to_thread(self.server.start)
            else:
                await self.start()

    async def _wait_for_answer(self) -> None:
        """Until the server has acknowledged another answer: it goes on."""
        answers = len(self.ledger.acknowledged)
        deadline = time.monotonic() + PATIENCE
        while len(self.ledger.acknowledged) == answers:
            if time.monotonic() > deadline:
                self.ledger.trouble.append(f"no answer was taken for {PATIENCE:.0f} s")
                return
            await asyncio.sleep(0.02)

    async def _disturb(self, phase: Phase, until: float) -> None:
        faults: list[Callable[[], Awaitable[None]]] = [self._kill, self._step_clock]
        if self.disk.kind:
            faults.append(self._fill_disk)
        if self.database is not None:
            faults.append(self._crash_database)
        for fault in itertools.cycle(faults):
            left = until - time.monotonic()
            if phase.every is None or left < phase.every:
                await asyncio.sleep(max(0.0, left))
                return
            await asyncio.sleep(phase.every)
            begun = time.monotonic()
            await fault()
            self.disturbed.append((begun, time.monotonic() + CALM_AFTER))
            await asyncio.to_thread(self.checker.check)
            if not self.server.is_alive():
                self.ledger.trouble.append(f"the server ended after {fault.__name__}")
                await self.start()

    async def _kill(self) -> None:
        await asyncio.to_thread(self.server.kill)
        self.ledger.killed()
        self.did["kill"] += 1
        await asyncio.to_thread(self.checker.check)
        await self.start()

    async def _step_clock(self) -> None:
        step = CLOCK_STEPS[self.did["clock step"] % len(CLOCK_STEPS)]
        self.server.step_clock(step)
        self.did["clock step"] += 1

    async def _fill_disk(self) -> None:
        """Until an answer was refused for it, and some seconds more: stores write into room that
        they have for a while.
        """
        await asyncio.to_thread(self.disk.fill)
        deadline = time.monotonic() + FELT_WITHIN
        waits = self.ledger.did[WAIT]
        while self.ledger.did[WAIT] == waits and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        await asyncio.sleep(FULL_SECONDS)
        self.disk.free()
        self.did["disk full"] += 1
        self.did["disk full, and answers had to wait"] += self.ledger.did[WAIT] > waits
        if self.database is not None and not self.database.running():
            self.did["database down, disk full"] += 1
            await asyncio.to_thread(self.database.start)

    async def _crash_database(self) -> None:
        assert self.database is not None
        await asyncio.to_thread(crash, self.database)
        self.did["database crash"] += 1


def _median(values: list[float]) -> float:
    return round(sorted(values)[len(values) // 2], 2)


def memory_figures(samples: list[int]) -> dict[str, Any]:
    """Mebibytes a second -> at the beginning, after a third, at the end, and how much the most
    since that third exceeds it.
    """
    if len(samples) < 3:
        return {}
    settled = samples[len(samples) // 3]
    most = max(samples[len(samples) // 3 :])
    return {
        "start": samples[0],
        "after_a_third": settled,
        "end": samples[-1],
        "growth": round(most / settled - 1, 3),
    }


def phases(given: argparse.Namespace) -> list[Phase]:
    if given.kills:
        return [Phase("kills", given.speed, kills=given.kills, life=given.life)]
    seconds = given.minutes * 60
    if given.only_faults:
        return [Phase("faults", given.speed, seconds, every=given.every)]
    return [
        Phase("warm-up", 1.0, 0.1 * seconds),
        Phase("a person's pace", 1.0, 0.3 * seconds),
        Phase("without pause", FASTEST, 0.2 * seconds),
        Phase("faults", given.speed, 0.4 * seconds, every=given.every),
    ]


def soak(given: argparse.Namespace, store: str) -> list[dict[str, Any]]:
    """All phases on one store; the last row has what was compared in the end."""
    rows: list[dict[str, Any]] = []
    names = ("annotators", "examples", "classes", "batch", "speed", "every", "edit_every", "life")
    settings = {"store": store} | {name: getattr(given, name) for name in names}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # That the run is trusted is remembered there, and not in the user's own folder.
        os.environ["XDG_STATE_HOME"] = str(folder)
        disk = stack.enter_context(small_disk(given.disk))
        database = None
        if store == "postgresql":
            database = stack.enter_context(database_on(disk.folder / "postgres"))
        endurance = Soak(given, disk, folder, database)
        stack.callback(endurance.server.close)

        async def all_phases() -> None:
            for phase in phases(given):
                row = await endurance.pass_through(phase)
                rows.append(settings | row)
                print(json.dumps(rows[-1]), flush=True)
            whole = settings | {
                "phase": "whole",
                "disk": disk.kind or "not mounted: no disk was filled",
                "server_lives": endurance.server.lives,
            }
            rows.append(whole | await endurance.finish())
            print(json.dumps(rows[-1]), flush=True)

        asyncio.run(all_phases())
    return rows


def main(arguments: list[str] | None = None) -> bool:
    """-> whether anything was wrong"""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--store",
        nargs="+",
        choices=["postgresql", "sqlite"],
        default=["sqlite", "postgresql"],
    )
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10, help="for each store")
    parser.add_argument("--kills", type=int, default=0, help="do nothing but so many, each store")
    parser.add_argument("--only-faults", action="store_true", help="leave the other phases out")
    parser.add_argument("--life", type=float, default=1.0, help="seconds between two kills")
    parser.add_argument("--every", type=float, default=10, help="seconds between two faults")
    parser.add_argument("--edit-every", type=float, default=60, help="seconds between class edits")
    parser.add_argument("--speed", type=float, default=5, help="of the fast motion")
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--disk", type=int, default=512, help="mebibytes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all servers are stopped
    wrong = False
    for store in given.store:
        rows = soak(given, store)
        if given.out:
            with given.out.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        wrong |= bool(rows[-1]["wrong"])
    return wrong


if __name__ == "__main__":
    sys.exit(main())
