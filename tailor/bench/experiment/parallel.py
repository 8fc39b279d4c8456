"""Trials in processes of their own: what they report, and stopping them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from typing import Any

from tailor.bench.demo import one_thread_each

#: how often the queue of reports is looked at, in seconds
PACE = 0.2
_reports: Any = None


def _begin(reports: Any) -> None:
    """In a worker: Ctrl-C is the parent's to handle, and a worker does not outlive its parent."""
    global _reports
    _reports = reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


def report(value: Any) -> None:
    """In a worker: a plain value for the parent."""
    if _reports is not None:
        _reports.put(value)


def run_all(job: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Call job(*args) for each in `workers` processes of one thread each -> what they report(), as it comes.

    The first error ends all. What is running when this is closed or interrupted is stopped at once: a job must be
    able to go on where it stood.
    """
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    with one_thread_each():
        reports = context.SimpleQueue()
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(reports,))
        try:
            pending = {pool.submit(job, *args) for args in jobs}
            while pending:
                done, pending = wait(pending, PACE, FIRST_COMPLETED)
                while not reports.empty():
                    yield reports.get()
                for future in done:
                    future.result()
            while not reports.empty():
                yield reports.get()
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
