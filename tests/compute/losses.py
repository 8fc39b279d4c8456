"""Losing workers and nodes at a chosen moment of a round."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

from tailor import InputError
from tailor.compute import Engine


def hold(function, folder, shared, *call):
    """The first call of all leaves word of its process and node, and then waits to be killed;
    others do their work.
    """
    import ray

    folder.mkdir(exist_ok=True)
    try:
        (folder / "held").touch(exist_ok=False)
    except FileExistsError:
        return function(shared, *call)
    (folder / "aside").write_text(f"{os.getpid()} {ray.get_runtime_context().get_node_id()}")
    (folder / "aside").rename(folder / "victim")
    time.sleep(300)
    raise AssertionError("nobody killed this task")


class Losing(Engine):
    """Another engine that, in some of its map calls, loses what holds a task: lose(pid, node) in a
    thread meanwhile, and then after(), before the round goes on.
    """

    name = "losing"

    def __init__(self, engine, folder, lose, at=(1, 2), after=lambda: None):
        self._engine = engine
        self._folder = folder
        self._lose = lose
        self._at = at
        self._after = after
        self.calls = 0
        self.problems = []

    @property
    def workers(self):
        return self._engine.workers

    def map_with(self, make, function, calls):
        return self._engine.map_with(make, function, calls)

    def map(self, function, calls, shared=None):
        number = self.calls
        self.calls = self.calls + 1
        if number not in self._at:
            return self._engine.map(function, calls, shared)
        folder = self._folder / f"map-{number}"
        thread = threading.Thread(target=self._watch, args=(folder / "victim",))
        thread.start()
        try:
            return self._engine.map(partial(hold, function, folder), calls, shared)
        finally:
            thread.join()
            self._after()

    def _watch(self, victim):
        try:
            pid, node = when(lambda: victim.exists() and victim.read_text().split())
            self._lose(int(pid), node)
        except BaseException as problem:
            self.problems.append(problem)


def unit():
    return 1


def held_once(made, folder, number):
    """The square of a number; the first call of all leaves word of itself and then waits to be
    killed.
    """
    return hold(square, folder, made, number)


def fails(*_):
    raise InputError("this model can't be made")


def when(condition, timeout=240):
    """What the condition gives, once it is true."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return found


def square(shared, number):
    if number < 0:
        raise InputError(f"number {number} is no good")
    return shared * number**2


def dies_once(model, folder, number):
    """The first call of all kills its process."""
    try:
        (folder / "died").touch(exist_ok=False)
    except FileExistsError:
        return number**2
    os.kill(os.getpid(), signal.SIGKILL)
