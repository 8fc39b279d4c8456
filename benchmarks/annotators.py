"""Fifty annotators at one server: how long each waits, and whether anything is lost or given twice.

    python benchmarks/annotators.py [--store postgresql sqlite] [--people 50] [--minutes 20]
    [--speed 2.5] [--least 0]

`tailor label` runs in a process of its own, PostgreSQL is started for it with every flush to disk;
the annotators (benchmarks/crowd.py) are HTTP clients on loopback in this process. --minutes of work
happen in fast motion: pauses and leases are --speed times shorter, everything else takes its time;
nobody goes home before --least answers. Then what the annotators saw is compared with the store.
Prints one JSON object a store; exits with 1 where anything is wrong.

Needs pip install 'tailor-active-learning[web,postgres]' httpx, and Linux: CPU times come from
/proc.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from coordinator import begin
from crowd import Acknowledged, Annotator, Ledger, served

from tailor.run.project import Project
from tailor.run.replay import rebuild
from tailor.run.state import RunState
from tailor.storage import Event
from tailor.testing.postgres import postgres_server

LEASE = 300.0  # seconds of real life


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--store",
        nargs="+",
        choices=["postgresql", "sqlite"],
        default=["postgresql", "sqlite"],
    )
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--speed", type=float, default=2.5)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=500)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that both servers are stopped
    wrong = False
    for store in given.store:
        database = postgres_server() if store == "postgresql" else contextlib.nullcontext()
        with tempfile.TemporaryDirectory() as folder, database as server:
            # That the run is trusted with its database is remembered there.
            os.environ["XDG_STATE_HOME"] = folder
            row = measure(Path(folder), given, server)
            print(json.dumps({"store": store} | row), flush=True)
            wrong |= bool(row["wrong"])
    sys.exit(wrong)


def measure(folder: Path, given: argparse.Namespace, database: Any) -> dict[str, Any]:
    url = database.url() if database is not None else None
    truth = begin(
        folder,
        given.examples,
        given.classes,
        given.batch,
        url,
    )
    lease = max(10.0, LEASE / given.speed)
    ledger = Ledger()
    with served(folder, "--lease", str(lease), "--trust") as (address, server):
        load = os.getloadavg()[0]
        cpu = cpu_seconds(server.pid)
        started = time.monotonic()
        base = cpu_seconds(*database_processes(database))
        own = time.process_time()
        people = [
            Annotator(
                f"annotator {n}",
                address,
                lambda example_id: str(truth[int(example_id)]),
                given.classes,
                ledger,
                speed=given.speed,
                lease=lease,
                least=given.least,
            )
            for n in range(given.people)
        ]
        until = started + given.minutes * 60 / given.speed
        seen = asyncio.run(everybody(people, until, address))
        took = time.monotonic() - started
        spent = {
            "server": cpu_seconds(server.pid) - cpu,
            "database": cpu_seconds(*database_processes(database)) - base,
            "annotators": time.process_time() - own,
        }
        idle = waited_for_a_core(server.pid)
        high = peak_mib(server.pid)
    run_state, events = read(folder)
    return {
        "people": given.people,
        "examples": given.examples,
        "classes": given.classes,
        "batch": given.batch,
        "minutes": given.minutes,
        "speed": given.speed,
        "took_s": round(took, 1),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "acknowledged": len(ledger.acknowledged),
        "per_second": round(len(ledger.acknowledged) / took, 1),
        "requests_per_second": round(sum(map(len, ledger.times.values())) / took, 1),
        **{
            f"{kind}_ms": milliseconds(ledger.times[kind])
            for kind in ("next", "answer", "panel", "why")
        },
        "both_after_the_first_minute_ms": milliseconds(
            [
                (asked, seconds)
                for kind in ("next", "answer")
                for asked, seconds in ledger.times[kind]
                if asked > started + 60
            ]
        ),
        "rounds": len(run_state.rounds),
        "did": dict(ledger.did),
        "passed_on": ledger.passed_on(),
        "cpu_s": {name: round(seconds, 1) for name, seconds in spent.items()},
        "server_waited_for_a_core_s": round(idle, 1),
        "server_peak_mib": high,
        "wrong": compare(ledger, run_state, events, seen),
    }


async def everybody(people: list[Annotator], until: float, address: str) -> dict[str, Any]:
    """All of them at once; what the server says of it in the end."""
    await asyncio.gather(*(annotator.work(until) for annotator in people))
    async with httpx.AsyncClient(
        base_url=address,
        verify=False,
        trust_env=False,
        follow_redirects=True,
    ) as client:
        await client.get("/")
        return (await client.get("/api/overview")).json()


# ---------------------------------------------------------------------- checks


def read(folder: Path) -> tuple[RunState, list[Event]]:
    """What is in the store, replayed."""
    project = Project(folder, trust=True)
    with project.store(readonly=True) as store:
        return rebuild(project.settings, store), list(store.events())


def compare(
    ledger: Ledger, run_state: RunState, events: list[Event], seen: dict[str, Any]
) -> list[str]:
    """What the annotators saw, what the store holds, and what the server counted: where they
    differ, in words.
    """
    wrong = list(ledger.trouble)
    stored = answers_in(events)
    latest: dict[str, Acknowledged] = {}
    for ack in ledger.acknowledged:
        key = (ack.event, run_state.position[ack.id])
        kept = stored.pop(key, None)
        expected = (
            ack.who,
            None if ack.label is None else [run_state.task.classes.index(ack.label)],
        )
        if kept != expected:
            wrong.append(
                f"lost: event {ack.event} should say {expected} of {ack.id}, and says {kept}"
            )
        if ack.id not in latest or latest[ack.id].event < ack.event:
            latest[ack.id] = ack
    wrong += [f"nobody was told of {answer} in event {key}" for key, answer in stored.items()]
    for ack in latest.values():
        row = run_state.label_of(run_state.position[ack.id])
        label = None if row is None else run_state.task.classes[int(np.flatnonzero(row)[0])]
        if label != ack.label or (
            label is None and not run_state.is_skipped(run_state.position[ack.id])
        ):
            wrong.append(f"{ack.id} has the label {label}, the last answer was {ack.label}")
    wrong += [f"{example_id} was in two hands at once" for example_id in ledger.shared()]
    wrong += [
        f"{example_id} was given out after it had been answered"
        for example_id in ledger.given_again()
    ]
    if [event.number for event in events] != list(range(1, len(events) + 1)):
        wrong.append("the numbers of the events have holes")
    counts = {counted["name"]: counted["count"] for counted in seen["counts"]}
    if counts != run_state.counts() or seen["progress"]["answered"] != run_state.answered():
        wrong.append(f"the server counted {counts}, the events replayed give {run_state.counts()}")
    if sum(ack.label is not None for ack in latest.values()) != run_state.answered():
        wrong.append(f"{run_state.answered()} labels, and {len(latest)} examples were answered")
    return wrong


def answers_in(events: list[Event]) -> dict[tuple[int, int], tuple[str, list[int] | None]]:
    """(event, position) -> (who, classes), None where it was skipped."""
    answers: dict[tuple[int, int], tuple[str, list[int] | None]] = {}
    for event in events:
        parts = event.body["events"] if event.kind == "several" else [(event.kind, event.body)]
        for body in (body for kind, body in parts if kind == "told"):
            answers |= {
                (event.number, position): (body["by"], classes)
                for position, classes in body["answers"]
            }
            answers |= {
                (event.number, position): (body["by"], None) for position in body["skipped"]
            }
    return answers


# ---------------------------------------------------------------------- figures


def milliseconds(times: list[tuple[float, float]]) -> dict[str, float]:
    """times: (when, how long) in seconds"""
    if not times:
        return {}
    p50, p95, p99, longest = np.quantile([took for _, took in times], [0.5, 0.95, 0.99, 1]).tolist()
    figures = {"p50": p50, "p95": p95, "p99": p99, "max": longest}
    return {name: round(1000 * seconds, 1) for name, seconds in figures.items()} | {"n": len(times)}


def cpu_seconds(*pids: int) -> float:
    """Of these processes so far, and of their children that have ended."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def waited_for_a_core(pid: int) -> float:
    """Seconds, all threads together, in which there was work and other processes had the cores."""
    return (
        sum(
            int(path.read_text().split()[1])
            for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )


def database_processes(database: Any) -> list[int]:
    if database is None:
        return []
    first = (database.folder / "data" / "postmaster.pid").read_text().split()[0]
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", first],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(first), *map(int, children.stdout.split())]


def peak_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
