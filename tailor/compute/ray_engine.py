"""A Ray cluster: what a lost worker or node had in hand runs again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tailor.common.distribution import pip_install
from tailor.compute.base import Call, Engine
from tailor.errors import InputError, TailorError

S = TypeVar("S")
T = TypeVar("T")
#: a call, and which of the results will be its own
NumberedCall = tuple[int, Call]
#: tasks handed to the cluster for each that can run: enough that no worker waits
AHEAD = 2
#: seconds without a result after which a look is taken whether any node could still give one
PATIENCE = 60.0


def import_ray(alone: bool) -> Any:
    """The ray package, or InputError where it is not installed.

    alone: for a cluster of this machine, which then listens on the loopback address only, and wants
    a token.
    """
    if alone:
        # Ray reads these when it is imported; the first is its switch for loopback on every system.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise InputError(f"the ray engine needs Ray: {pip_install('ray')}") from None
    return ray


class RayEngine(Engine):
    """Calls become tasks of a Ray cluster. Files must lie where every node sees them.

    address  of a running cluster, or "auto"; None: a cluster of this machine alone, which goes with
             the process
    tasks    how many tasks a cluster of this machine runs at once; by default as many as it has
             cores
    cpus     cores, and so threads, of a task
    gpus     GPUs of a worker that predicts or trains
    retries  how often a task is run again where its worker was lost
    """

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: int = 1,
        gpus: float = 0,
        retries: int = 8,
        tasks: int | None = None,
    ) -> None:
        if cpus < 1 or gpus < 0 or retries < 0:
            raise InputError(
                f"cpus is {cpus}, gpus {gpus}, retries {retries}: at least 1, 0 and 0 are needed"
            )
        self.cpus = cpus
        self.gpus = gpus
        self.retries = retries
        #: the ray package
        self.ray = import_ray(alone=address is None)
        self._began_ray = not self.ray.is_initialized()
        if self._began_ray:
            self._begin_ray(address, tasks)
        # A cluster that was begun here must not outlive an engine that was refused.
        try:
            self.check_room(gpus)
        except InputError:
            self.close()
            raise
        as_task = self.ray.remote(num_cpus=cpus, max_retries=retries)
        self._task = as_task(_call)

    def _begin_ray(self, address: str | None, tasks: int | None) -> None:
        """Join a cluster, or begin one of this machine alone."""
        options = dict[str, Any]()
        if address is None:
            # One more server that would listen, and that nobody looks at.
            options["include_dashboard"] = False
            if tasks is not None:
                options["num_cpus"] = tasks * self.cpus
        try:
            self.ray.init(address=address or "local", log_to_driver=False, **options)
        except ConnectionError as problem:
            raise InputError(
                f"no Ray cluster at {address!r} ({problem}): start one with `ray start --head`"
            ) from None

    @property
    def workers(self) -> int:
        return max(1, self._room(0))

    def check_room(self, gpus: float, workers: int = 1) -> None:
        """Whether the nodes that are there could run so many workers at once, each with so many
        GPUs: for what no node has, Ray waits without a word.
        """
        room = self._room(gpus)
        if room >= workers:
            return
        # The largest by what is asked for first of all.
        order = ("CPU", "GPU")
        if gpus:
            order = ("GPU", "CPU")
        largest = max(self._nodes(), key=lambda node: [node[resource] for resource in order])
        largest_cpus = largest["CPU"]
        largest_gpus = largest["GPU"]
        short = "no room for a worker"
        if workers > 1:
            short = f"room for {room} of {workers} workers"
        raise InputError(
            f"the Ray cluster has {short} with cpus = {self.cpus} and gpus = {gpus:g}; its "
            f"largest node has cpus = {largest_cpus:g} and gpus = {largest_gpus:g}: ask for "
            "less, or start more or larger nodes"
        )

    def _room(self, gpus: float) -> int:
        """How many tasks with so many GPUs the nodes can run at once."""
        total = 0
        for node in self._nodes():
            room = node["CPU"] / self.cpus
            if gpus:
                room_by_gpus = node["GPU"] / gpus
                room = min(room, room_by_gpus)
            total += int(room + 1e-6)  # ten tenths of a GPU are one
        return total

    def _nodes(self) -> list[dict[str, float]]:
        """Cores and GPUs of each."""
        nodes = []
        for node in self.ray.nodes():
            # Ray lists nodes that are gone, too.
            if not node["Alive"]:
                continue
            resources = node["Resources"]
            counts = {
                "CPU": resources.get("CPU", 0.0),
                "GPU": resources.get("GPU", 0.0),
            }
            nodes.append(counts)
        return nodes

    def map(
        self,
        function: Callable[..., T],
        calls: Sequence[Call],
        shared: Any = None,
    ) -> list[T]:
        results = dict[int, T]()
        waiting = _in_reverse(calls)
        running = dict[Any, int]()  # by reference: the number of the call
        with clear_errors(self.ray):
            # Sent once and read by every task, since it may be large.
            common = self.ray.put((function, self.cpus, shared))
            while waiting or running:
                # The workers are counted each time: a node that joined is used at once.
                while waiting and len(running) < AHEAD * self.workers:
                    number, call = waiting.pop()
                    reference = self._task.remote(common, *call)
                    running[reference] = number
                for reference in self._wait_for_any(running, gpus=0):
                    number = running.pop(reference)
                    results[number] = self.ray.get(reference)
        return _in_order(results, len(calls))

    def _wait_for_any(self, running: Mapping[Any, Any], gpus: float) -> list[Any]:
        """Those of the references that are done, at least one; none where PATIENCE has run out.

        Raises InputError where no node is left that could run a task with so many GPUs.
        """
        references = list(running)
        done: list[Any]
        done, _ = self.ray.wait(references, timeout=PATIENCE)
        if not done:
            # The last node that could do it may be lost, and Ray would wait for another for ever.
            self.check_room(gpus)
        return done

    def map_with(
        self,
        make: Callable[[], S],
        function: Callable[..., T],
        calls: Sequence[Call],
    ) -> list[T]:
        """A crew of actors, each with a GPU where the engine was given some."""
        if not calls:
            return []
        self.check_room(self.gpus)
        results = dict[int, T]()
        waiting = _in_reverse(calls)
        running: dict[Any, tuple[int, int]] = {}  # by reference: the numbers of call and actor
        with clear_errors(self.ray), self._crew(make, function) as crew:
            while waiting or running:
                # Each time: a node that joined is used at once.
                room = self._room(self.gpus)
                crew.grow(room, len(waiting))
                started = crew.hand_out(waiting)
                running.update(started)
                for reference in self._wait_for_any(running, self.gpus):
                    number, actor = running.pop(reference)
                    crew.received(actor)
                    results[number] = self.ray.get(reference)
                if not waiting:
                    # Whoever was lost may start again in the room that this leaves.
                    crew.dismiss_idle()
        return _in_order(results, len(calls))

    @contextmanager
    def _crew(self, make: Callable[[], S], function: Callable[..., T]) -> Iterator[_Crew]:
        options: dict[str, float] = {
            "max_restarts": self.retries,
            "max_task_retries": self.retries,
            "num_cpus": self.cpus,
        }
        if self.gpus:
            options["num_gpus"] = self.gpus
        common = self.ray.put((make, function, self.cpus))
        crew = _Crew(self.ray, options, common)
        try:
            yield crew
        finally:
            crew.dismiss()

    def close(self) -> None:
        # A cluster that was there before stays for whoever began it.
        if self._began_ray and self.ray.is_initialized():
            self.ray.shutdown()


class _Crew:
    """Actors, and how many calls each of them has in hand.

    Ray starts an actor that was lost again where there is room, and runs its calls again. Where all
    the room is taken by the others, it gets that of the first one that has nothing left to do.
    """

    def __init__(
        self,
        ray: Any,
        options: dict[str, Any],
        common: Any,
    ) -> None:
        self._ray = ray
        self._common = common
        self._new = ray.remote(**options)(_Worker)
        self._actors = dict[int, Any]()
        self._in_hand = dict[int, int]()
        self._hired = 0

    def grow(self, room: int, calls: int) -> None:
        """To as many as there is room for, if there are calls for so many."""
        places = room - len(self._actors)
        for _ in range(min(places, calls)):
            number = self._hired
            self._actors[number] = self._new.remote(self._common)
            self._in_hand[number] = 0
            self._hired += 1

    def hand_out(self, waiting: list[NumberedCall]) -> dict[Any, tuple[int, int]]:
        """Give the last of the waiting calls to actors until all of these have enough.

        Returns the numbers of call and actor, by reference.
        """
        started = {}
        while waiting:
            actor = self._idlest()
            if actor is None:
                break
            number, call = waiting.pop()
            reference = self._send(actor, call)
            started[reference] = (number, actor)
        return started

    def _idlest(self) -> int | None:
        """The actor with the fewest calls in hand, unless all have enough."""
        if not self._in_hand:
            return None
        actor = min(self._in_hand, key=self._in_hand.__getitem__)
        if self._in_hand[actor] >= AHEAD:
            return None
        return actor

    def _send(self, actor: int, call: Call) -> Any:
        self._in_hand[actor] += 1
        worker = self._actors[actor]
        return worker.call.remote(*call)

    def received(self, actor: int) -> None:
        self._in_hand[actor] -= 1

    def dismiss_idle(self) -> None:
        # Over a copy: whoever is dismissed leaves the dict.
        for actor, calls in list(self._in_hand.items()):
            if not calls:
                self._dismiss(actor)

    def dismiss(self) -> None:
        for actor in list(self._actors):
            self._dismiss(actor)

    def _dismiss(self, actor: int) -> None:
        del self._in_hand[actor]
        worker = self._actors.pop(actor)
        self._ray.kill(worker)


class _Worker:
    """An actor: makes what it needs once, then takes one call after another."""

    def __init__(self, common: tuple[Callable[[], Any], Callable[..., Any], int]) -> None:
        make, function, threads = common
        self._make = make
        self._function = function
        self._tools: list[Any] = []  # what make() gave, once it was called
        use_threads(threads)

    def call(self, *call: Any) -> Any:
        if not self._tools:  # here and not above, so that its errors are those of a call
            tool = self._make()
            self._tools.append(tool)
        return self._function(self._tools[0], *call)


def _in_order(results: Mapping[int, T], count: int) -> list[T]:
    """The results of `count` calls, by the numbers of these. Raises KeyError where one is
    missing.
    """
    return [results[number] for number in range(count)]


def _in_reverse(calls: Sequence[Call]) -> list[NumberedCall]:
    """The calls with their numbers, the first one last: pop() takes them in order."""
    numbered = list(enumerate(calls))
    numbered.reverse()
    return numbered


def _call(common: tuple[Callable[..., T], int, Any], *call: Any) -> T:
    """In a worker."""
    function, threads, shared = common
    use_threads(threads)
    return function(shared, *call)


def use_threads(count: int) -> None:
    """Of the libraries that have threads of their own: a task gets no more cores than it asked
    for.
    """
    import numba
    import torch

    torch.set_num_threads(count)
    # numba takes no more than it started with.
    numba_threads = numba.get_num_threads()
    numba.set_num_threads(min(count, numba_threads))


@contextmanager
def clear_errors(ray: Any) -> Iterator[None]:
    """What a task raised is raised as it was; a task that could not be run anywhere is named as
    such.
    """
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, TailorError):
            raise cause from None
        raise
    except ray.exceptions.RayError as error:
        raise TailorError(f"the Ray cluster could not finish the work: {error}") from error
