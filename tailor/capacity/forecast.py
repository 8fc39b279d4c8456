"""What a round will cost, before it is run: the real code on two small pools, and a line through
what it took.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tailor.capacity.stages import OPEN, Stage
from tailor.capacity.synthetic_pool import PoolSize
from tailor.capacity.whole_round import WHOLE, in_own_process, whole_round
from tailor.selection.pool_view import CHUNK
from tailor.strategies import make_strategy

MIB = 2**20
#: bytes that this process keeps for every example: who is free, its tie-breaker, its largest
#: probability. What families keep besides they say themselves: Strategy.bytes_per_example
KEPT = 32
#: A probe has at least so many parts of CHUNK rows and so many batches. Where few batches fit the
#: pool, galaxy's cuts run out and taking costs many times as much: a probe must not be such a pool
#: where the round's own is not.
SMALL = (2, 5)
LARGE = (8, 15)
#: seconds for which a probe's stages are repeated: short ones are measured well, and long ones once
ENOUGH = 4.0


@dataclass(frozen=True)
class CostEstimate:
    """What a stage will take."""

    stage: str
    seconds: float
    cpu_seconds: float  # of all threads
    memory: float  # bytes of the process at their height
    device_memory: float = 0  # bytes on a GPU at their height
    disk: float = 0  # bytes that are written


def forecast(size: PoolSize, folder: Path | None = None, device: str = "cpu") -> list[CostEstimate]:
    """The stages of one round at this size on this machine, over shards in one process.

    Both probes have the round's own K, d, labels, batch and plan, so only N is extrapolated; a pool
    that is not larger than the larger probe is simply run. folder: whose disk is used, by default
    that of temporary files.
    """
    small = replace(size, pool=probe_rows(size, *SMALL))
    large = replace(size, pool=probe_rows(size, *LARGE))
    if size.pool <= large.pool:
        stages = in_own_process(whole_round, size, folder, device=device, enough=ENOUGH)
        return [_as_measured(stage) for stage in stages]
    of_small = in_own_process(whole_round, small, folder, device=device, enough=ENOUGH)
    of_large = in_own_process(
        whole_round,
        large,
        folder,
        device=device,
        enough=ENOUGH,
        steps=1,  # the smaller probe has told how long training takes
    )
    pools = (small.pool, large.pool)
    return [
        _estimate(less, more, pools, size) for less, more in zip(of_small, of_large, strict=True)
    ]


def altogether(stages: list[CostEstimate]) -> CostEstimate:
    """Of the whole round."""
    return CostEstimate(
        WHOLE,
        seconds=sum(stage.seconds for stage in stages),
        cpu_seconds=sum(stage.cpu_seconds for stage in stages),
        memory=max(stage.memory for stage in stages),
        device_memory=max(stage.device_memory for stage in stages),
        disk=sum(stage.disk for stage in stages),
    )


def probe_rows(size: PoolSize, parts: int, batches: int) -> int:
    """Whole parts of CHUNK rows: at least so many, and enough for so many batches."""
    parts_of_batches = -(-batches * size.batch // CHUNK)
    return max(parts, parts_of_batches) * CHUNK


def _as_measured(stage: Stage) -> CostEstimate:
    return CostEstimate(
        stage.name,
        stage.seconds,
        stage.cpu_seconds,
        memory=stage.peak_mib * MIB,
        device_memory=stage.device_mib * MIB,
        disk=stage.disk,
    )


def _estimate(less: Stage, more: Stage, pools: tuple[int, int], size: PoolSize) -> CostEstimate:
    """A stage at full size, from what it took at the two probes' sizes."""

    def at_size(small: float, large: float) -> float:
        return extrapolate((pools[0], small), (pools[1], large), size.pool)

    if more.name == "train":  # the larger probe cut it short, and it never looks at the pool
        return replace(_as_measured(less), disk=0)
    seconds = at_size(less.seconds, more.seconds)
    cpu_seconds = at_size(less.cpu_seconds, more.cpu_seconds)
    if more.name == "plan":  # which never looks at the pool
        seconds = less.seconds
        cpu_seconds = less.cpu_seconds
    per_example = _kept(more.name, size) + more.held_per_example
    return CostEstimate(
        more.name,
        seconds,
        cpu_seconds,
        memory=more.peak_mib * MIB + per_example * (size.pool - pools[1]),
        device_memory=at_size(less.device_mib, more.device_mib) * MIB,
        disk=at_size(less.disk, more.disk),
    )


def extrapolate(less: tuple[float, float], more: tuple[float, float], pool: float) -> float:
    """What a stage takes at `pool` examples, from (examples, taken) of two smaller pools: a fixed
    cost, and a cost for each example. Neither is below 0: where the line says so, the larger pool
    or the two together decide.
    """
    x0, y0 = less
    x1, y1 = more
    slope = max(0.0, (y1 - y0) / (x1 - x0))
    fixed = y1 - slope * x1
    if fixed >= 0:
        return fixed + slope * pool
    return (y0 + y1) / (x0 + x1) * pool


def _kept(stage: str, size: PoolSize) -> float:
    """Bytes that are kept for every example once this stage is done, whatever the predictions."""
    if stage == "predict":
        return 0
    strategies = [make_strategy(family) for family in size.families]
    names = [strategy.name for strategy in strategies]
    opened = strategies[:0]
    if stage == "take":
        opened = strategies
    elif stage.startswith(OPEN):
        # Families are opened one after another, in this order.
        opened = strategies[: names.index(stage.removeprefix(OPEN)) + 1]
    return KEPT + sum(strategy.bytes_per_example for strategy in opened)
