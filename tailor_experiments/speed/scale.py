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
AXES = ("N", "K", "M", "workers")
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


#: told of each plan before its round is run
Tell = Callable[[Point, list[CostEstimate]], None]


def points(
    axes: Iterable[str] = AXES, *, quick: bool = False, least: int = 1, most: int = FULL.pool
) -> Iterator[Point]:
    """All measurements along the axes. least, most: the smallest and the largest N."""
    full = FULL
    base = BASE
    pools: tuple[int, ...] = (50_000, 200_000, FULL.pool)
    classes: tuple[int, ...] = (10, 100, 1000)
    workers: tuple[int, ...] = (1, 2, 4)
    if quick:
        full = replace(
            FULL,
            pool=6000,
            classes=12,
            batch=200,
            features=16,
        )
        base = replace(
            BASE,
            pool=6000,
            classes=12,
            batch=200,
            features=16,
        )
        pools = (3000, 6000)
        classes = (6, 12)
        workers = (1, 2)
    pools = tuple(pool for pool in pools if least <= pool <= most)
    for axis in axes:
        if axis not in AXES:
            raise UnknownName("axis", axis, AXES)
        if axis == "N":
            if not pools:
                raise InputError(
                    f"no pool of {least:,} to {most:,} examples is measured: N is 50,000, "
                    f"200,000 and {FULL.pool:,}"
                )
            for pool in pools:
                yield Point(axis, pool, replace(full, pool=pool))
        elif axis == "K":
            for count in classes:
                yield Point(axis, count, replace(base, classes=count))
        elif axis == "M":
            for families in SETS:
                size = replace(base, families=families)
                yield Point(axis, len(make_arms(families, size.task)), size)
        else:
            for count in workers:
                yield Point(axis, count, base, count)


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
    left_out = skipped(axes, device)
    wanted = [axis for axis in axes if axis not in left_out]
    machine = measure_machine(folder, device, tries=2 if quick else TRIES)
    for point in points(wanted, quick=quick, least=least, most=most):
        planned: list[CostEstimate] = []
        if tell_plan is not None and not point.workers:
            planned = forecast(point.size, folder, device)
            tell_plan(point, planned)
        yield from measure_point(point, machine, device, folder, planned)


def measure_point(
    point: Point, machine: Machine, device: str, folder: Path | None, planned: list[CostEstimate]
) -> list[Row]:
    """A row a stage, and one for all of them."""
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
    return [
        _row(
            point,
            stage,
            machine,
            device,
            by_stage.get(stage.name),
        )
        for stage in [*stages, total(stages)]
    ]


def skipped(axes: Iterable[str], device: str = "cpu") -> dict[str, str]:
    """Axes that can't be measured here, and why."""
    if "workers" in axes and device != "cpu":
        return {"workers": "on a GPU one process does all of a round"}
    if "workers" in axes and find_spec("ray") is None:
        return {"workers": f"Ray is not installed: {pip_install('ray')}"}
    return {}


def total(stages: list[Stage]) -> Stage:
    """Of all that a round does: workers that start are no part of it."""
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
    point: Point, stage: Stage, machine: Machine, device: str, planned: CostEstimate | None
) -> Row:
    size = point.size
    limit = stage.limit(machine)
    row = {
        "axis": point.axis,
        "value": point.value,
        "stage": stage.name,
        "seconds": stage.seconds,
        "cpu_seconds": stage.cpu_seconds,
        "peak_mib": round(stage.peak_mib),
        "device_mib": round(stage.device_mib),
        "disk": stage.disk,
        "limit_seconds": limit,
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
    if planned is not None:
        row |= {
            "planned_seconds": planned.seconds,
            "planned_cpu_seconds": planned.cpu_seconds,
            "planned_peak_mib": round(planned.memory / 2**20),
            "planned_device_mib": round(planned.device_memory / 2**20),
            "planned_disk": planned.disk,
        }
    return row
