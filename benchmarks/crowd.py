"""Simulated annotators who use a labelling server as the page does, and a ledger of what they were
given and told.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

#: an annotator answers after at least and on average so many seconds of real life
QUICKEST, USUAL = 0.5, 2.5
#: chances of each answer: to skip, to be wrong and notice it later, to look back, to take a break,
#: to just go away
SKIP, MISTAKE, LOOK_BACK, BREAK, VANISH = 0.03, 0.04, 0.02, 0.004, 0.001
#: seconds of a break in real life; someone who vanishes stays away for so many leases
PAUSE, AWAY = 60.0, 1.3
AHEAD = 3  # examples that the page loads beyond the one on the screen
POLL = 0.4  # seconds between two looks while a round is prepared


@dataclass(eq=False)
class Hold:
    """An example was certainly in someone's hand from `start`, when he had the reply, to `end`,
    when he sent the answer or a good-bye, or a lease after his last request before he vanished.
    """

    who: str
    start: float
    end: float = float("inf")


@dataclass(frozen=True)
class Acknowledged:
    """An answer that the server called safe, under the number of its event. label None: skipped."""

    who: str
    id: str
    label: str | None
    event: int
    at: float


def _lists() -> dict[str, list[Any]]:
    return defaultdict(list)


@dataclass
class Ledger:
    """What happened, as the annotators saw it."""

    holds: dict[str, list[Hold]] = field(default_factory=_lists)  # of each example
    given: dict[str, list[tuple[str, float]]] = field(
        default_factory=_lists
    )  # example -> (who, when he asked)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    times: dict[str, list[tuple[float, float]]] = field(
        default_factory=_lists
    )  # request -> (when, how long)
    did: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)

    def shared(self) -> list[str]:
        """Examples that two people certainly had in hand at the same time."""
        shared = []
        for example_id, holds in self.holds.items():
            in_order = sorted(holds, key=lambda hold: hold.start)
            for n, first in enumerate(in_order):
                shared += [
                    example_id
                    for then in in_order[n + 1 :]
                    if then.who != first.who and then.start < first.end
                ]
        return shared

    def given_again(self) -> list[str]:
        """Examples that someone was given who asked after an answer to it had been acknowledged."""
        answered: dict[str, float] = {}
        for ack in self.acknowledged:
            answered[ack.id] = min(ack.at, answered.get(ack.id, ack.at))
        return [
            example_id
            for example_id, to in self.given.items()
            for _, asked in to
            if asked > answered.get(example_id, asked)
        ]

    def passed_on(self) -> int:
        """Examples that went to another person after someone had left."""
        return sum(len({hold.who for hold in holds}) > 1 for holds in self.holds.values())


class Annotator:
    """One person with a browser: answers travel while the next examples are fetched, the numbers
    are looked at.
    """

    def __init__(
        self,
        name: str,
        url: str,
        truth: Callable[[str], str],
        classes: int,
        ledger: Ledger,
        *,
        speed: float,
        lease: float,
        least: int = 0,
    ) -> None:
        """speed: of the fast motion; lease: the server's, in its own seconds; least: answers before
        going home
        """
        self.name = name
        self.truth = truth
        self.classes = classes
        self.ledger = ledger
        self.speed = speed
        self.lease = lease
        self.chance = random.Random(name)
        # uvicorn closes connections that were idle for five seconds: leave them before
        limits = httpx.Limits(keepalive_expiry=3.0)
        self.client = httpx.AsyncClient(
            base_url=url,
            verify=False,
            trust_env=False,
            limits=limits,
            timeout=60,
            follow_redirects=True,
        )
        self.csrf: dict[str, str] = {}
        self.hand: dict[str, Hold] = {}  # on the screen and loaded, the one on the screen first
        self.wrong: list[str] = []  # own mistakes, not noticed yet
        self.last_sign = 0.0  # when the last request was sent
        self.least = least
        self.answered = 0

    async def work(self, until: float) -> None:
        try:
            async with self.client:
                await self._enter()
                await self._fetch()
                while time.monotonic() < until or self.answered < self.least:
                    await self._step(until)
                await self._leave()
        except (
            Exception
        ) as error:  # a benchmark that goes on with fewer people would say too little
            self.ledger.trouble.append(f"{self.name}: {error!r}")

    async def _step(self, until: float) -> None:
        if not self.hand:
            self.ledger.did["ran dry"] += 1
            await asyncio.sleep(POLL)
            await self._fetch()
            return
        await self._wait(QUICKEST + self.chance.expovariate(1 / (USUAL - QUICKEST)))
        example_id = next(iter(self.hand))
        await asyncio.gather(
            self._answer(example_id, self._first_thought(example_id)), self._fetch()
        )
        self.answered += 1
        if self.hand:
            await self._get("why", "/api/why", id=next(iter(self.hand)))
        await self._get("panel", "/panel")
        if self.wrong and self.chance.random() < 0.3:
            await self._correct()
        if self.chance.random() < LOOK_BACK:
            await self._get("history", "/api/history", n=20)
            self.ledger.did["looked back"] += 1
        if self.chance.random() < BREAK:
            await self._leave()
            await self._wait(
                min(self.chance.uniform(0.5, 1.5) * PAUSE, (until - time.monotonic()) * self.speed)
            )
            await self._page("/")
            await self._fetch()
        elif self.chance.random() < VANISH:
            await self._vanish(until)

    def _first_thought(self, example_id: str) -> str | None:
        draw = self.chance.random()
        if draw < SKIP:
            self.ledger.did["skipped"] += 1
            return None
        if draw < SKIP + MISTAKE:
            self.wrong.append(example_id)
            return str(
                (int(self.truth(example_id)) + self.chance.randrange(1, self.classes))
                % self.classes
            )
        return self.truth(example_id)

    async def _correct(self) -> None:
        """Back to a mistake, as the page goes back: through the history."""
        example_id = self.wrong.pop()
        seen = [item["id"] for item in (await self._get("history", "/api/history", n=50))["items"]]
        if example_id in seen:
            await self._answer(example_id, self.truth(example_id))
            self.ledger.did["corrected"] += 1

    async def _vanish(self, until: float) -> None:
        """The lid is closed without a word; back after the lease, some first answer what is still
        on the screen.
        """
        self.ledger.did["vanished"] += 1
        away = max(0, min(AWAY * self.lease, until - time.monotonic()))
        await self._wait(away * self.speed)
        for hold in self.hand.values():
            hold.end = min(hold.end, time.monotonic(), self.last_sign + self.lease)
        stale = list(self.hand)
        self.hand = {}
        if stale and self.chance.random() < 0.5:
            await self._answer(stale[0], self.truth(stale[0]))
            self.ledger.did["answered late"] += 1
        await self._fetch()

    # ------------------------------------------------------------------ requests

    async def _enter(self) -> None:
        await self._page("/")
        self.csrf = {"X-CSRF-Token": (await self._get("session", "/api/session"))["csrf"]}
        reply = await self.client.post("/name", data={"name": self.name}, headers=self.csrf)
        reply.raise_for_status()
        me = await self._get("session", "/api/session")
        assert me["name"] == self.name, me
        self.csrf = {"X-CSRF-Token": me["csrf"]}

    async def _page(self, path: str) -> None:
        (await self.client.get(path)).raise_for_status()

    async def _fetch(self) -> None:
        """Until there are enough ahead. What was answered meanwhile may still be on the list: it is
        not new.
        """
        asked = time.monotonic()
        handed = await self._get("next", "/api/next", n=AHEAD + 2)
        now = time.monotonic()
        for example_id in (item["id"] for item in handed["items"]):
            self.ledger.given[example_id].append((self.name, asked))
            if example_id not in self.hand and not self._has_answered(example_id, asked):
                self.hand[example_id] = Hold(self.name, now)
                self.ledger.holds[example_id].append(self.hand[example_id])

    def _has_answered(self, example_id: str, since: float) -> bool:
        return any(
            hold.who == self.name and hold.end > since
            for hold in self.ledger.holds.get(example_id, ())
        )

    async def _answer(self, example_id: str, label: str | None) -> None:
        if example_id in self.hand:
            self.hand.pop(example_id).end = time.monotonic()
        body = {"id": example_id, "label": None if label is None else [label]}
        receipt = await self._timed(
            "answer", self.client.post("/api/answer", json=body, headers=self.csrf)
        )
        self.ledger.acknowledged.append(
            Acknowledged(
                self.name,
                example_id,
                label,
                receipt.json()["event"],
                time.monotonic(),
            )
        )

    async def _leave(self) -> None:
        for hold in self.hand.values():
            hold.end = time.monotonic()
        self.hand = {}
        await self._timed("leave", self.client.post("/api/leave", headers=self.csrf))
        self.ledger.did["left"] += 1

    async def _get(self, kind: str, path: str, **params: Any) -> Any:
        reply = await self._timed(kind, self.client.get(path, params=params))
        return reply.json() if path.startswith("/api") else reply.text

    async def _timed(self, kind: str, request: Any) -> httpx.Response:
        started = self.last_sign = time.monotonic()
        reply: httpx.Response = await request
        self.ledger.times[kind].append((started, time.monotonic() - started))
        if reply.status_code != 200:
            raise RuntimeError(f"{kind} answered {reply.status_code}: {reply.text[:200]}")
        return reply

    async def _wait(self, seconds: float) -> None:
        """So long in real life."""
        await asyncio.sleep(seconds / self.speed)


@contextlib.contextmanager
def served(run: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`tailor label` in a process of its own -> its address. It ends as by Ctrl-C."""
    command = [
        sys.executable,
        "-m",
        "tailor",
        "label",
        str(run),
        "--no-open",
        "--port",
        "0",
        *words,
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"Label at (\S+)", server.stdout.readline())
        if address is None:
            raise RuntimeError(f"the server did not start: {' '.join(command)}")
        yield address[1], server
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
