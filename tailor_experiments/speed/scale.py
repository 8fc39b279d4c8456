"""How every stage of a round grows with N, K, M and the number of workers, and how near each is to
its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tailor.capacity.device import device_name
from tailor.capacity.forecast import CostEstimate, altogether, forecast
from tailor.capacity.machine import TRIES, Machine, measure_machine
from tailor.capacity.stages import Stage
from tailor.capacity.synthetic_pool import SIZES, PoolSize
from tailor.capacity.whole_round import START, WHOLE, in_own_process, whole_round
from tailor.common.distribution import pip_install
from tailor.errors import InputError, UnknownName
from tailor.strategies import make_arms

#: the paper's largest shape, and one on which the other axes are measured
FULL = replace(SIZES["imagenet"], name="full")
BASE = replace(
    SIZES["imagenet"],
    name="base",
    pool=200_000,
    classes=100,
    batch=5_000,
)
#: what varies: examples, classes, arms, processes
AXES = (
    "N",
    "K",
    "M",
    "workers",
)
#: families that bring M from 1 to 3 K + 2 arms
SETS = (
    ("confidence",),
    ("confidence", "badge", "galaxy"),
    ("confidence", "badge", "galaxy", "most-likely-positive"),
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One measurement: what varies, its value, and the round that is run.

    workers  of Ray; 0: one process does it
    """

    axis: str
    value: int
    size: PoolSize
    workers: int = 0


@dataclass(frozen=True)
class Grid:
    """The values that are measured along each axis.

    full  the size of which N varies
    base  the size of which the others vary
    """

    full: PoolSize
    base: PoolSize
    pools: tuple[int, ...]
    classes: tuple[int, ...]
    workers: tuple[int, ...]


GRID = Grid(
    FULL,
    BASE,
    pools=(50_000, 200_000, FULL.pool),
    classes=(10, 100, 1000),
    workers=(1, 2, 4),
)


def _tiny(size: PoolSize) -> PoolSize:
    return replace(
        size,
        pool=6000,
        classes=12,
        batch=200,
        features=16,
    )


#: seconds long, to see that it runs
QUICK_GRID = Grid(
    _tiny(FULL),
    _tiny(BASE),
    pools=(3000, 6000),
    classes=(6, 12),
    workers=(1, 2),
)

#: told of each plan before its round is run
Tell = Callable[[Point, list[CostEstimate]], None]


def points(
    axes: Iterable[str] = AXES,
    *,
    quick: bool = False,
    least: int = 1,
    most: int = FULL.pool,
) -> Iterator[Point]:
    """All measurements along the axes. least, most: the smallest and the largest N."""
    grid = QUICK_GRID if quick else GRID
    for axis in axes:
        if axis == "N":
            yield from _along_pools(grid, least, most)
        elif axis == "K":
            yield from _along_classes(grid)
        elif axis == "M":
            yield from _along_arms(grid)
        elif axis == "workers":
            yield from _along_workers(grid)
        else:
            raise UnknownName("axis", axis, AXES)


def _along_pools(grid: Grid, least: int, most: int) -> Iterator[Point]:
    pools = [pool for pool in grid.pools if least <= pool <= most]
    if not pools:
        raise InputError(
            f"no pool of {least:,} to {most:,} examples is measured: N is 50,000, "
            f"200,000 and {FULL.pool:,}"
        )
    for pool in pools:
        yield Point("N", pool, replace(grid.full, pool=pool))


def _along_classes(grid: Grid) -> Iterator[Point]:
    for classes in grid.classes:
        yield Point("K", classes, replace(grid.base, classes=classes))


def _along_arms(grid: Grid) -> Iterator[Point]:
    for families in SETS:
        size = replace(grid.base, families=families)
        arms = make_arms(families, size.task)
        yield Point("M", len(arms), size)


def _along_workers(grid: Grid) -> Iterator[Point]:
    for workers in grid.workers:
        yield Point(
            "workers",
            workers,
            grid.base,
            workers,
        )


def measure(
    axes: Iterable[str] = AXES,
    *,
    device: str = "cpu",
    quick: bool = False,
    least: int = 1,
    most: int = FULL.pool,
    folder: Path | None = None,
    tell_plan: Tell | None = None,
) -> Iterator[Row]:
    """Rows as they come; skipped() says which axes are left out.

    tell_plan: where it is given, each round in one process is planned before it is run, and its
    rows hold both.
    """
    # What can't be measured here must not end what can.
    left_out = skipped(axes, device)
    wanted = [axis for axis in axes if axis not in left_out]
    machine = measure_machine(folder, device, tries=2 if quick else TRIES)
    for point in points(
        wanted,
        quick=quick,
        least=least,
        most=most,
    ):
        planned: list[CostEstimate] = []
        if tell_plan is not None and not point.workers:
            # Before the round: a plan must not know what it takes.
            planned = forecast(point.size, folder, device)
            tell_plan(point, planned)
        yield from measure_point(
            point,
            machine,
            device,
            folder,
            planned,
        )


def measure_point(
    point: Point,
    machine: Machine,
    device: str,
    folder: Path | None,
    planned: list[CostEstimate],
) -> list[Row]:
    """A row a stage, and one for all of them."""
    # In a process of its own, so that the peak of its memory is this round's.
    stages = in_own_process(
        whole_round,
        point.size,
        folder,
        device=device,
        workers=point.workers,
    )
    if planned:
        planned = [*planned, altogether(planned)]
    by_stage = {estimate.stage: estimate for estimate in planned}
    rows = []
    for stage in [*stages, total(stages)]:
        row = _row(
            point,
            stage,
            machine,
            device,
        )
        if stage.name in by_stage:
            row |= _planned_columns(by_stage[stage.name])
        rows.append(row)
    return rows


def skipped(axes: Iterable[str], device: str = "cpu") -> dict[str, str]:
    """Axes that can't be measured here, and why."""
    if "workers" in axes and device != "cpu":
        return {"workers": "on a GPU one process does all of a round"}
    if "workers" in axes and find_spec("ray") is None:
        return {"workers": f"Ray is not installed: {pip_install('ray')}"}
    return {}


def total(stages: list[Stage]) -> Stage:
    """Of all that a round does: workers that start are no part of it."""
    # They are started once for all rounds.
    stages = [stage for stage in stages if stage.name != START]
    return Stage(
        WHOLE,
        seconds=sum(stage.seconds for stage in stages),
        cpu_seconds=sum(stage.cpu_seconds for stage in stages),
        peak_mib=max(stage.peak_mib for stage in stages),
        device_mib=max(stage.device_mib for stage in stages),
        disk=sum(stage.disk for stage in stages),
        bytes=sum(stage.bytes for stage in stages),
        flops=sum(stage.flops for stage in stages),
    )


def _row(
    point: Point,
    stage: Stage,
    machine: Machine,
    device: str,
) -> Row:
    """What was measured of one stage."""
    size = point.size
    limit = stage.limit(machine)
    return {
        "axis": point.axis,
        "value": point.value,
        "stage": stage.name,
        "seconds": stage.seconds,
        "cpu_seconds": stage.cpu_seconds,
        "peak_mib": round(stage.peak_mib),
        "device_mib": round(stage.device_mib),
        "disk": stage.disk,
        "limit_seconds": limit,
        # A stage may be shorter than the clock can tell.
        "of_limit": limit / max(stage.seconds, 1e-9),
        "pool": size.pool,
        "classes": size.classes,
        "arms": len(make_arms(size.families, size.task)),
        "batch": size.batch,
        "features": size.features,
        "workers": point.workers or 1,
        "device": device_name(device),
        "machine": asdict(machine),
    }


def _planned_columns(estimate: CostEstimate) -> Row:
    return {
        "planned_seconds": estimate.seconds,
        "planned_cpu_seconds": estimate.cpu_seconds,
        "planned_peak_mib": round(estimate.memory / 2**20),
        "planned_device_mib": round(estimate.device_memory / 2**20),
        "planned_disk": estimate.disk,
    }
