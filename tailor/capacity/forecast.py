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
        stages = in_own_process(
            whole_round,
            size,
            folder,
            device=device,
            enough=ENOUGH,
        )
        return [_as_measured(stage) for stage in stages]
    of_small = in_own_process(
        whole_round,
        small,
        folder,
        device=device,
        enough=ENOUGH,
    )
    of_large = in_own_process(
        whole_round,
        large,
        folder,
        device=device,
        enough=ENOUGH,
        steps=1,  # the smaller probe has told how long training takes
    )
    pools = (small.pool, large.pool)
    estimates = list[CostEstimate]()
    for small_stage, large_stage in zip(of_small, of_large, strict=True):
        estimate = _estimate(small_stage, large_stage, pools, size)
        estimates.append(estimate)
    return estimates


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


def _estimate(
    small: Stage,
    large: Stage,
    pools: tuple[int, int],
    size: PoolSize,
) -> CostEstimate:
    """A stage at full size, from what it took at the two probes' sizes."""
    small_pool, large_pool = pools

    def at_size(small_value: float, large_value: float) -> float:
        return extrapolate((small_pool, small_value), (large_pool, large_value), size.pool)

    # The larger probe cuts training short, and training never looks at the pool.
    if large.name == "train":
        return replace(_as_measured(small), disk=0)
    seconds = at_size(small.seconds, large.seconds)
    cpu_seconds = at_size(small.cpu_seconds, large.cpu_seconds)
    # Planning never looks at the pool either: a difference between the probes is noise.
    if large.name == "plan":
        seconds = small.seconds
        cpu_seconds = small.cpu_seconds
    per_example = _kept(large.name, size) + large.held_per_example
    further_examples = size.pool - large_pool
    device_mib = at_size(small.device_mib, large.device_mib)
    return CostEstimate(
        large.name,
        seconds,
        cpu_seconds,
        memory=large.peak_mib * MIB + per_example * further_examples,
        device_memory=device_mib * MIB,
        disk=at_size(small.disk, large.disk),
    )


def extrapolate(smaller: tuple[float, float], larger: tuple[float, float], pool: float) -> float:
    """What a stage takes at `pool` examples, from (examples, taken) of two smaller pools: a fixed
    cost, and a cost for each example. Neither is below 0: where the line says so, the larger pool
    or the two together decide.
    """
    x0, y0 = smaller
    x1, y1 = larger
    slope = (y1 - y0) / (x1 - x0)
    slope = max(0.0, slope)
    fixed = y1 - slope * x1
    if fixed >= 0:
        return fixed + slope * pool
    per_example = (y0 + y1) / (x0 + x1)
    return per_example * pool


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
        last = names.index(stage.removeprefix(OPEN))
        opened = strategies[: last + 1]
    kept_by_families = sum(strategy.bytes_per_example for strategy in opened)
    return KEPT + kept_by_families
