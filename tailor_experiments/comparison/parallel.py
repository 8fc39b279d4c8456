"""Trials in processes of their own: what they report, and stopping them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Protocol

#: what a worker says here is said by the parent, where somebody may listen
_log = logging.getLogger("tailor.common.compiled")
#: how often the queue of reports is looked at, in seconds
PACE = 0.2
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Reports(Protocol):
    """The worker's end of a queue."""

    def put(self, value: Any, /) -> None: ...


#: where this process reports to, if it is a worker
_reports: Reports | None = None


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started in here compute with one thread: several that share the cores only get in
    each other's way.
    """
    # By the environment, since libraries read it when they are first imported.
    before = {name: os.environ.get(name) for name in THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def report_to(reports: Reports) -> None:
    """In a worker: from here on report() goes there."""
    # A worker does one job at a time, and the jobs don't know of queues.
    global _reports
    _reports = reports


def report(value: Any) -> None:
    """In a worker: a plain value for the parent."""
    if _reports is not None:
        _reports.put(value)


class _ToParent(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        report(record)


def _begin_worker(reports: Reports, log_level: int) -> None:
    """In a worker: Ctrl-C is the parent's to handle, and a worker does not outlive its parent."""
    report_to(reports)
    _log.setLevel(log_level)
    _log.addHandler(_ToParent())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave_with_parent() -> None:
        parent.join()
        # At once: a normal exit would wait for threads that may never end.
        os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _reported(reports: Any) -> Iterator[Any]:
    """In the parent: what has come; what was said to the log goes on to its own."""
    while not reports.empty():
        value = reports.get()
        if isinstance(value, logging.LogRecord):
            _log.handle(value)
        else:
            yield value


def run_all(
    job: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Any]:
    """Call job(*args) for each in `workers` processes of one thread each -> what they report(), as
    it comes.

    The first error ends all. What is running when this is closed or interrupted is stopped at once:
    a job must be able to go on where it stood.
    """
    # spawn: a fork would copy the locks of threads that torch and numba have started.
    context = multiprocessing.get_context("spawn")
    children_before = set(multiprocessing.active_children())
    with one_thread_each():
        # SimpleQueue writes at once: what was reported is not lost with a worker that dies.
        reports = context.SimpleQueue()
        pool = ProcessPoolExecutor(
            workers,
            mp_context=context,
            initializer=_begin_worker,
            initargs=(reports, _log.getEffectiveLevel()),
        )
        try:
            pending = {pool.submit(job, *args) for args in jobs}
            while pending:
                done, pending = wait(pending, PACE, FIRST_COMPLETED)
                yield from _reported(reports)
                for future in done:
                    future.result()
            yield from _reported(reports)
        except BaseException:
            for child in set(multiprocessing.active_children()) - children_before:
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
