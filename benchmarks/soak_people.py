"""Annotators and an owner who live through the faults of benchmarks/soak.py as the page does: what
the server has not acknowledged is sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from crowd import AHEAD, MISTAKE, SKIP, Acknowledged, Annotator, Hold, Ledger

#: replies after which the page does not try again
FINAL = (400, 409, 413, 422)
#: a reply that nobody should ever see
BROKEN = 500
#: seconds before the next try where nobody listens; the page's first pause
PAUSE = 0.3
#: what the ledger counts where the server says "try later"
WAIT = "told to wait"
#: share of the answers with any class, so that those that come and go have labels
OTHERS = 0.1
SECRET = "a phrase that is long enough"


@dataclass
class SoakLedger(Ledger):
    """What happened, with all that was tried."""

    #: (who, id, label) that was sent, acknowledged or not
    sent: set[tuple[str, str, str | None]] = field(default_factory=set)
    #: class lists that the owner was told of, in order, and how many edits were tried
    class_lists: list[tuple[str, ...]] = field(default_factory=list)
    class_edits_tried: int = 0
    refused: int = 0
    last_kill: float = 0.0
    open_holds: set[Hold] = field(default_factory=set)

    def killed(self) -> None:
        """Leases end with the server: nobody holds anything any more."""
        self.last_kill = time.monotonic()
        for hold in self.open_holds:
            hold.end = min(hold.end, self.last_kill)
        self.open_holds.clear()


class Persistent:
    """Requests that are made until there is a final reply."""

    name: str
    client: httpx.AsyncClient
    ledger: SoakLedger
    csrf: dict[str, str]

    async def sign_in(self) -> None:
        while True:
            form = {"name": self.name, "secret": SECRET}
            reply = await self.persist("sign in", "POST", "/login", data=form)
            session = await self.client_get("/api/session")
            if session is not None and session.status_code == 200:
                self.csrf = {"X-CSRF-Token": session.json()["csrf"]}
                return
            if reply.status_code in FINAL:
                raise RuntimeError(f"{self.name} can't sign in: {reply.text[:300]}")

    async def client_get(self, path: str) -> httpx.Response | None:
        try:
            return await self.client.get(path)
        except httpx.TransportError:
            return None

    async def persist(self, kind: str, method: str, path: str, **content: Any) -> httpx.Response:
        """The first reply that is not "try again"."""
        while True:
            started = time.monotonic()
            try:
                reply = await self.client.request(method, path, headers=self.csrf, **content)
            except httpx.TransportError:
                self.ledger.did["cut off"] += 1
                await asyncio.sleep(PAUSE)
                continue
            if reply.status_code == 200 or reply.status_code in FINAL:
                self.ledger.times[kind].append((started, time.monotonic() - started))
                return reply
            if reply.status_code == BROKEN:
                self.ledger.trouble.append(f"{self.name}: {kind} broke: {reply.text[:200]}")
            if reply.status_code == 401:
                self.ledger.did["signed out"] += 1
                await self.sign_in()
                continue
            self.ledger.did[WAIT] += 1
            await asyncio.sleep(float(reply.headers.get("retry-after", PAUSE)))


class EnduringAnnotator(Persistent, Annotator):
    """A person who signs in, keeps what is not acknowledged, and sends it again.

    kind_of  id -> the kind of the example, which is the first word of its class's name
    """

    ledger: SoakLedger

    def __init__(
        self,
        name: str,
        url: str,
        kind_of: Callable[[str], str],
        ledger: SoakLedger,
        *,
        speed: float,
        lease: float,
    ) -> None:
        super().__init__(name, url, kind_of, 1, ledger, speed=speed, lease=lease)
        self.classes_shown: list[str] = []
        self.tickets: dict[str, str] = {}
        self.over = asyncio.Event()

    async def label(self, over: asyncio.Event) -> None:
        """Work until it is over; may be called again."""
        self.over = over
        try:
            if not self.csrf:
                await self.sign_in()
            await self._fetch()
            while not over.is_set():
                await self._step(float("inf"))
            await self._leave()
        except Exception as error:
            # A soak that goes on with fewer people would say too little.
            self.ledger.trouble.append(f"{self.name}: {error!r}")

    async def _wait(self, seconds: float) -> None:
        """So long in real life, but not when it is over."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds / self.speed)

    async def _page(self, path: str) -> None:
        await self.persist("page", "GET", path)

    def _give_sign(self) -> None:
        """Before a request that prolongs leases: what has run out meanwhile is held no more."""
        now = time.monotonic()
        if now > self.last_sign + self.lease:
            for hold in self.hand.values():
                hold.end = min(hold.end, self.last_sign + self.lease)
        self.last_sign = now

    async def _get(self, kind: str, path: str, **params: Any) -> Any:
        reply = await self.persist(kind, "GET", path, params=params)
        if reply.status_code != 200:
            raise RuntimeError(f"{kind} answered {reply.status_code}: {reply.text[:200]}")
        return reply.json() if path.startswith("/api") else reply.text

    async def _fetch(self) -> None:
        self._give_sign()
        asked = time.monotonic()
        handed = await self._get("next", "/api/next", n=AHEAD + 2)
        now = time.monotonic()
        self.classes_shown = handed["classes"]
        for item in handed["items"]:
            example_id = item["id"]
            self.tickets[example_id] = item["ticket"]
            self.ledger.given[example_id].append((self.name, asked))
            held = self.hand.get(example_id)
            if held is not None and held.end > now:
                continue
            if self._has_answered(example_id, asked):
                continue
            hold = Hold(self.name, now)
            self.hand[example_id] = hold
            if asked > self.ledger.last_kill:
                self.ledger.holds[example_id].append(hold)
                self.ledger.open_holds.add(hold)

    def _first_thought(self, example_id: str) -> str | None:
        if self.chance.random() < SKIP:
            self.ledger.did["skipped"] += 1
            return None
        if self.chance.random() < MISTAKE:
            self.wrong.append(example_id)
            return self.chance.choice(self.classes_shown)
        if self.chance.random() < OTHERS:
            return self.chance.choice(self.classes_shown)
        return self._class_of(example_id)

    def _class_of(self, example_id: str) -> str:
        kind = self.truth(example_id)
        names = [name for name in self.classes_shown if name.split()[0] == kind]
        # A kind that was merged into another has no class of its own.
        return names[0] if names else self.classes_shown[0]

    async def _correct(self) -> None:
        example_id = self.wrong.pop()
        if example_id in self.tickets:
            await self._answer(example_id, self._class_of(example_id))
            self.ledger.did["corrected"] += 1

    async def _answer(self, example_id: str, label: str | None) -> None:
        self._give_sign()
        hold = self.hand.pop(example_id, None)
        if hold is not None:
            hold.end = min(hold.end, time.monotonic())
            self.ledger.open_holds.discard(hold)
        while True:
            self.ledger.sent.add((self.name, example_id, label))
            body = {
                "id": example_id,
                "label": None if label is None else [label],
                "ticket": self.tickets[example_id],
            }
            reply = await self.persist("answer", "POST", "/api/answer", json=body)
            if reply.status_code == 200:
                event = reply.json()["event"]
                receipt = Acknowledged(self.name, example_id, label, event, time.monotonic())
                self.ledger.acknowledged.append(receipt)
                return
            if reply.status_code == 409 and "meanwhile" in reply.text:
                # Given to another after the server's end, who was faster.
                self.ledger.refused += 1
                return
            if reply.status_code != 422:
                raise RuntimeError(f"an answer met {reply.status_code}: {reply.text[:200]}")
            # The class has another name by now: look at the list, answer again.
            self.ledger.did["answered again with another class"] += 1
            await self._fetch()
            label = self._class_of(example_id)

    async def _leave(self) -> None:
        for hold in self.hand.values():
            hold.end = min(hold.end, time.monotonic(), self.last_sign + self.lease)
            self.ledger.open_holds.discard(hold)
        self.hand = {}
        await self.persist("leave", "POST", "/api/leave")
        self.ledger.did["left"] += 1


class Owner(Persistent):
    """Adds, renames and merges classes and takes merges back while the others label."""

    def __init__(self, url: str, ledger: SoakLedger, pause: float) -> None:
        """pause: seconds between two edits"""
        self.name = "owner"
        self.ledger = ledger
        self.pause = pause
        self.csrf = {}
        self.client = httpx.AsyncClient(base_url=url, timeout=60, trust_env=False)
        self.client.follow_redirects = True
        self._renamed = 0
        self._turn = 0

    async def edit_classes(self, over: asyncio.Event) -> None:
        """Change the classes until it is over; may be called again."""
        edits = (self._rename, self._add, self._merge, self._undo)
        try:
            if not self.csrf:
                await self.sign_in()
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), self.pause)
                if over.is_set():
                    return
                await edits[self._turn % len(edits)]()
                self._turn += 1
        except Exception as error:
            self.ledger.trouble.append(f"owner: {error!r}")

    async def _classes(self) -> list[str]:
        """The kinds of the beginning first, what was added last."""
        reply = await self.persist("classes", "GET", "/api/overview")
        names = [counted["name"] for counted in reply.json()["counts"]]
        return sorted(names, key=lambda name: (not name[0].isdigit(), name))

    async def _edit(self, edit: str, **body: Any) -> None:
        self.ledger.class_edits_tried += 1
        reply = await self.persist("class edit", "POST", f"/api/classes/{edit}", json=body)
        if reply.status_code == 200:
            self.ledger.class_lists.append(tuple(reply.json()["classes"]))
            self.ledger.did[f"class {edit}"] += 1
        else:
            # Done before the server's end, and tried again since nobody had said so.
            self.ledger.did["class edit refused"] += 1

    async def _rename(self) -> None:
        old = (await self._classes())[0]
        self._renamed += 1
        await self._edit("rename", old=old, new=f"{old.split()[0]} v{self._renamed}")

    async def _add(self) -> None:
        classes = await self._classes()
        if len(classes) < 14:
            await self._edit("add", name=f"more {self._renamed}")

    async def _merge(self) -> None:
        classes = await self._classes()
        await self._edit("merge", old=classes[-1], into=classes[1])

    async def _undo(self) -> None:
        reply = await self.persist("classes", "GET", "/api/classes/merged")
        merge = reply.json()["merge"]
        # Every other merge stays.
        if merge is not None and self._renamed % 2:
            await self._edit("undo", merge=merge["event"])
