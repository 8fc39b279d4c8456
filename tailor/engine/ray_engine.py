"""A Ray cluster: each shard is a task, and a task whose worker or node is lost runs again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, TypeVar, cast

from tailor.engine.base import Engine
from tailor.errors import InputError, TailorError

S = TypeVar("S")
T = TypeVar("T")
#: tasks handed to the cluster for each that can run: enough that no worker waits
AHEAD = 2
#: seconds without a result after which a look is taken whether any node could still give one
PATIENCE = 60.0


def import_ray(alone: bool) -> Any:
    """alone: for a cluster of this machine, which then listens on the loopback address only, and wants a token."""
    if alone:  # Ray reads these when it is imported; the first is its switch for loopback on every system
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise InputError("the ray engine needs Ray: pip install 'tailor[ray]'") from None
    return ray


class RayEngine(Engine):
    """Calls become tasks of a Ray cluster. Files must lie where every node sees them.

    address  of a running cluster, or "auto"; None: a cluster of this machine alone, which goes with the process
    tasks    how many tasks a cluster of this machine runs at once; by default as many as it has cores
    cpus     cores, and so threads, of a task
    gpus     GPUs of a worker that predicts or trains
    retries  how often a task is run again where its worker was lost
    """

    name = "ray"

    def __init__(
        self, address: str | None = None, *, cpus: int = 1, gpus: float = 0, retries: int = 8, tasks: int | None = None
    ) -> None:
        if cpus < 1 or gpus < 0 or retries < 0:
            raise InputError(f"cpus is {cpus}, gpus {gpus}, retries {retries}: at least 1, 0 and 0 are needed")
        self.cpus, self.gpus, self.retries = cpus, gpus, retries
        self._ray = import_ray(alone=address is None)
        self._mine = not self._ray.is_initialized()
        if self._mine:
            more: dict[str, Any] = {"include_dashboard": False} if address is None else {}
            if tasks is not None and address is None:
                more["num_cpus"] = tasks * cpus
            try:
                self._ray.init(address=address or "local", log_to_driver=False, **more)
            except ConnectionError as problem:
                raise InputError(
                    f"no Ray cluster at {address!r} ({problem}): start one with `ray start --head`"
                ) from None
        try:
            self.check_room(gpus)
        except InputError:
            self.close()
            raise
        self._task = self._ray.remote(num_cpus=cpus, max_retries=retries)(_call)

    @property
    def workers(self) -> int:
        return max(1, self._room(0))

    def check_room(self, gpus: float, workers: int = 1) -> None:
        """Whether the nodes that are there could run so many workers at once, each with so many GPUs: for what no node
        has, Ray waits without a word."""
        room = self._room(gpus)
        if room >= workers:
            return
        largest = max(self._nodes(), key=lambda has: (has["GPU"], has["CPU"]) if gpus else (has["CPU"], has["GPU"]))
        short = f"room for {room} of {workers} workers" if workers > 1 else "no room for a worker"
        raise InputError(
            f"the Ray cluster has {short} with cpus = {self.cpus} and gpus = {gpus:g}; its largest node has "
            f"cpus = {largest['CPU']:g} and gpus = {largest['GPU']:g}: ask for less, or start more or larger nodes"
        )

    def _room(self, gpus: float) -> int:
        """How many tasks with so many GPUs the nodes can run at once."""
        each = (min(has["CPU"] / self.cpus, has["GPU"] / gpus if gpus else inf) for has in self._nodes())
        return sum(int(count + 1e-6) for count in each)  # ten tenths of a GPU are one

    def _nodes(self) -> list[dict[str, float]]:
        """Cores and GPUs of each."""
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return [{kind: has.get(kind, 0.0) for kind in ("CPU", "GPU")} for has in alive]

    def map(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]], shared: Any = None) -> list[T]:
        ray, found = self._ray, dict[int, T]()
        with clear_errors(ray):
            common = ray.put((function, self.cpus, shared))
            waiting, running = list(enumerate(calls))[::-1], dict[Any, int]()
            while waiting or running:
                while waiting and len(running) < AHEAD * self.workers:  # a node that joined is used at once
                    number, call = waiting.pop()
                    running[self._task.remote(common, *call)] = number
                done, _ = ray.wait(list(running), timeout=PATIENCE)
                if not done:
                    self.check_room(gpus=0)  # a node that all this needs may be lost
                for reference in done:
                    found[running.pop(reference)] = ray.get(reference)
        return [found[number] for number in range(len(calls))]

    def map_with(self, make: Callable[[], S], function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """Ray Data with a pool of actors, each with a GPU where the engine was given some."""
        if not calls:
            return []
        from ray.data import DataContext, from_items

        DataContext.get_current().enable_progress_bars = False
        self.check_room(self.gpus)
        most = min(len(calls), self._room(self.gpus))
        with clear_errors(self._ray):
            common = self._ray.put((make, function, self.cpus, list(calls)))
            numbers = from_items([{"number": n} for n in range(len(calls))], override_num_blocks=len(calls))
            rows = numbers.map_batches(
                _Worker, fn_constructor_args=([common],), batch_size=1, concurrency=(1, most),
                num_cpus=self.cpus, num_gpus=self.gpus or None,
            ).take_all()  # fmt: skip
        found = {int(row["number"]): row["result"] for row in rows}
        return [cast(T, self._ray.cloudpickle.loads(found[number])) for number in range(len(calls))]

    def close(self) -> None:
        if self._mine and self._ray.is_initialized():
            self._ray.shutdown()


class _Worker:
    """An actor of Ray Data: makes what it needs once, then takes one call after another."""

    def __init__(self, common: list[Any]) -> None:
        import ray

        make, self._function, threads, self._calls = ray.get(common[0])
        use_threads(threads)
        self._made = make()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import ray

        number = int(batch["number"][0])
        result = ray.cloudpickle.dumps(self._function(self._made, *self._calls[number]))
        return {"number": [number], "result": [result]}


def _call(common: tuple[Callable[..., T], int, Any], *call: Any) -> T:
    """In a worker."""
    function, threads, shared = common
    use_threads(threads)
    return function(shared, *call)


def use_threads(count: int) -> None:
    """Of the libraries that have threads of their own: a task gets no more cores than it asked for."""
    import numba
    import torch

    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.get_num_threads()))


@contextmanager
def clear_errors(ray: Any) -> Iterator[None]:
    """What a task raised is raised as it was; a task that could not be run anywhere is named as such."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, TailorError):
            raise cause from None
        raise
    except ray.exceptions.RayError as error:
        raise TailorError(f"the Ray cluster could not finish the work: {error}") from error
