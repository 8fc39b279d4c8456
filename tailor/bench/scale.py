"""How every stage of a round grows with N, K, M and the number of workers, and how near each is to its limit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any

from tailor.bench.device import device_name
from tailor.bench.machine import Machine, measure_machine
from tailor.bench.pools import SIZES, Size
from tailor.bench.stages import Stage, measure_model, measure_round, write_pool
from tailor.engine import Engine, LocalEngine
from tailor.errors import InputError, UnknownName
from tailor.strategies import make_arms

#: the paper's largest shape, and one on which the other axes are measured
FULL = replace(SIZES["imagenet"], name="full")
BASE = replace(SIZES["imagenet"], name="base", pool=200_000, classes=100, batch=5_000)
AXES = ("N", "K", "M", "workers")
#: families that bring M from 1 to 3 K + 2 arms
SETS = (
    ("confidence",),
    ("confidence", "badge", "galaxy"),
    ("confidence", "badge", "galaxy", "most-likely-positive"),
)
#: the head is solved in up to 100 iterations, however large the pool; so many are measured, and the first row says so
STEPS = 4
#: stages shorter than this are noise, and have no exponent
SHORT = 0.02

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One measurement: what varies, its value, and the round that is run."""

    axis: str
    value: int
    size: Size
    workers: int = 1


def points(axes: Iterable[str] = AXES, *, quick: bool = False, most: int = FULL.pool) -> Iterator[Point]:
    """All measurements along the axes. most: the largest N."""
    full, base = FULL, BASE
    if quick:
        full, base = (replace(s, pool=6000, classes=12, batch=200, features=16) for s in (FULL, BASE))
    pools = [n for n in ((3000, 6000) if quick else (50_000, 200_000, FULL.pool)) if n <= most]
    for axis in axes:
        if axis not in AXES:
            raise UnknownName("axis", axis, AXES)
        if axis == "N":
            if not pools:
                raise InputError(f"no pool of at most {most} examples is measured: the smallest has 50,000")
            yield from (Point(axis, n, replace(full, pool=n)) for n in pools)
        elif axis == "K":
            yield from (Point(axis, k, replace(base, classes=k)) for k in ((6, 12) if quick else (10, 100, 1000)))
        elif axis == "M":
            for families in SETS:
                size = replace(base, families=families)
                yield Point(axis, len(make_arms(families, size.task)), size)
        else:
            yield from (Point(axis, w, base, w) for w in ((1, 2) if quick else (1, 2, 4)))


def measure_point(point: Point, machine: Machine, device: str, folder: Path | None) -> list[Row]:
    """A row a stage. Compiling is done before, on a small pool."""
    warm = replace(point.size, pool=2000, classes=min(point.size.classes, 8), batch=100)
    with tempfile.TemporaryDirectory(dir=folder, prefix="tailor-scale-") as where, engine_for(point) as engine:
        for size in (warm, point.size):
            pool = write_pool(size, Path(where) / str(size.pool))
            stages = measure_model(pool, engine, Path(where) / "again", device, steps=STEPS)
            stages += measure_round(pool, engine, device=device)[0]
    stages = [replace(s, name=f"train, {STEPS} steps") if s.name == "train" else s for s in stages]
    return [_row(point, stage, machine, device) for stage in [*stages, total(stages)]]


def engine_for(point: Point) -> AbstractContextManager[Engine]:
    if point.axis != "workers":
        return LocalEngine()
    from tailor.engine.ray_engine import RayEngine

    return RayEngine(tasks=point.workers)


def total(stages: list[Stage]) -> Stage:
    names = ("seconds", "cpu_seconds", "bytes", "flops", "sorted")
    sums = {name: sum(getattr(s, name) for s in stages) for name in names}
    return Stage("whole round", peak_mib=max(s.peak_mib for s in stages), **sums)


def _row(point: Point, stage: Stage, machine: Machine, device: str) -> Row:
    size, limit = point.size, stage.limit(machine)
    return {
        "axis": point.axis, "value": point.value, "stage": stage.name, "seconds": stage.seconds,
        "cpu_seconds": stage.cpu_seconds, "peak_mib": round(stage.peak_mib),
        "limit_seconds": limit, "of_limit": limit / max(stage.seconds, 1e-9),
        "pool": size.pool, "classes": size.classes, "arms": len(make_arms(size.families, size.task)),
        "batch": size.batch, "features": size.features, "workers": point.workers, "device": device_name(device),
    }  # fmt: skip


def measure(
    axes: Iterable[str] = AXES, *, device: str = "cpu", quick: bool = False, most: int = FULL.pool,
    folder: Path | None = None,
) -> Iterator[Row]:  # fmt: skip
    """Rows as they come. Where Ray is not installed the workers' axis is left out; skipped() says so."""
    machine = measure_machine(folder, device)
    for point in points([a for a in axes if a not in skipped(axes)], quick=quick, most=most):
        yield from measure_point(point, machine, device, folder)


def skipped(axes: Iterable[str]) -> dict[str, str]:
    """Axes that can't be measured here, and why."""
    if "workers" in axes and find_spec("ray") is None:
        return {"workers": "Ray is not installed: pip install 'tailor[ray]'"}
    return {}


def exponents(rows: list[Row]) -> dict[tuple[str, str], float]:
    """(axis, stage) -> the slope in log-log, where the stage takes long enough to tell.

    Of the CPU's seconds where this process does all the work on one: other work on the machine changes them least.
    """
    found: dict[tuple[str, str], float] = {}
    for axis, stage in dict.fromkeys((r["axis"], r["stage"]) for r in rows):
        mine = [r for r in rows if (r["axis"], r["stage"]) == (axis, stage)]
        clock = "cpu_seconds" if axis != "workers" and mine[0]["device"].startswith("cpu") else "seconds"
        if len({r["value"] for r in mine}) > 1 and max(r[clock] for r in mine) >= SHORT:
            x, y = [log(r["value"]) for r in mine], [log(max(r[clock], 1e-4)) for r in mine]
            found[axis, stage] = linear_regression(x, y).slope
    return found


def draw(rows: list[Row], *paths: Path) -> None:
    """Seconds of every stage against each axis, log-log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from tailor.bench.figures import style

    axes = list(dict.fromkeys(r["axis"] for r in rows))
    stages = list(dict.fromkeys(r["stage"] for r in rows))
    styles = {stage: style(place) for place, stage in enumerate(["whole round", *stages])}
    figure, panels = pyplot.subplots(1, len(axes), figsize=(4.6 * len(axes), 4.2), squeeze=False, sharey=True)
    for panel, axis in zip(panels[0], axes):
        for stage in stages:
            mine = [r for r in rows if r["axis"] == axis and r["stage"] == stage]
            if mine:
                panel.loglog([r["value"] for r in mine], [r["seconds"] for r in mine], label=stage, **styles[stage])
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3, which="both")
    panels[0][0].set_ylabel("seconds")
    panels[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
