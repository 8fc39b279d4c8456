"""What a round will cost, before it is run: the real code on two small pools, and a line through
what it took.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tailor.capacity.sharded_pool import hears_answers
from tailor.capacity.stages import Stage
from tailor.capacity.synthetic_pool import PoolSize
from tailor.capacity.whole_round import WHOLE, in_own_process, whole_round
from tailor.selection.pool_view import CHUNK

#: bytes that this process keeps for every example: who is free, its tie-breaker, its largest
#: probability
KEPT = 32
#: and what families keep besides: norms, clocks, bounds
KEPT_BY = {"badge": 72, "coreset": 48, "submodular": 40, "galaxy": 9, "galaxy-all": 9, "random": 8}
#: bytes of an example on one class's line; where labels that come make the line longer, it is put
#: together anew; where predictions are held in memory, no scores are kept with it
ON_A_LINE, ON_A_GROWING_LINE, ON_A_WHOLE_LINE = 70, 85, 33
#: A probe has at least so many parts of CHUNK rows and so many batches. Where few batches fit the
#: pool, galaxy's cuts run out and taking costs many times as much: a probe must not be such a pool
#: where the round's own is not.
SMALL = (2, 5)
LARGE = (8, 15)
#: seconds for which a probe's stages are repeated: short ones are measured well, and long ones once
ENOUGH = 4.0


@dataclass(frozen=True)
class CostEstimate:
    """A stage: seconds, the process's memory and a GPU's at their height, and the bytes written to
    disk.
    """

    stage: str
    seconds: float
    cpu_seconds: float  # of all threads
    memory: float
    device_memory: float = 0
    disk: float = 0


def forecast(size: PoolSize, folder: Path | None = None, device: str = "cpu") -> list[CostEstimate]:
    """The stages of one round at this size on this machine, over shards in one process.

    Both probes have the round's own K, d, labels, batch and plan, so only N is extrapolated; a pool
    that is not larger than the larger probe is simply run. folder: whose disk is used, by default
    that of temporary files.
    """
    small, large = (replace(size, pool=probe_rows(size, *least)) for least in (SMALL, LARGE))
    if size.pool <= large.pool:
        alone = in_own_process(whole_round, size, folder, device=device, enough=ENOUGH)
        return [
            CostEstimate(
                s.name, s.seconds, s.cpu_seconds, s.peak_mib * 2**20, s.device_mib * 2**20, s.disk
            )
            for s in alone
        ]
    less = in_own_process(whole_round, small, folder, device=device, enough=ENOUGH)
    more = in_own_process(
        whole_round, large, folder, device=device, enough=ENOUGH, steps=1
    )  # training is known
    pools = small.pool, large.pool
    on_a_line = bytes_on_a_line(size, in_memory=device != "cpu")
    return [
        _estimate(a, b, pools, size, on_a_line * b.on_lines)
        for a, b in zip(less, more, strict=True)
    ]


def altogether(planned: list[CostEstimate]) -> CostEstimate:
    """Of the whole round."""
    sums = {
        name: sum(getattr(one, name) for one in planned)
        for name in ("seconds", "cpu_seconds", "disk")
    }
    heights = {
        name: max(getattr(one, name) for one in planned) for name in ("memory", "device_memory")
    }
    return CostEstimate(WHOLE, **sums, **heights)


def probe_rows(size: PoolSize, parts: int, batches: int) -> int:
    """Whole parts of CHUNK rows."""
    return max(parts, -(-batches * size.batch // CHUNK)) * CHUNK


def bytes_on_a_line(size: PoolSize, in_memory: bool) -> int:
    """Of an example on one class's line of galaxy."""
    return ON_A_WHOLE_LINE if in_memory else ON_A_GROWING_LINE if hears_answers(size) else ON_A_LINE


def _estimate(
    less: Stage, more: Stage, pools: tuple[int, int], size: PoolSize, lines: float
) -> CostEstimate:
    """lines: bytes of galaxy's lines for each example"""

    def at_size(name: str) -> float:
        return extrapolate(
            (pools[0], getattr(less, name)), (pools[1], getattr(more, name)), size.pool
        )

    if more.name == "train":  # the larger probe cut it short
        return CostEstimate(
            less.name,
            less.seconds,
            less.cpu_seconds,
            less.peak_mib * 2**20,
            less.device_mib * 2**20,
        )
    seconds = at_size("seconds")
    busy = at_size("cpu_seconds")
    if more.name == "plan":  # which never looks at the pool
        seconds = less.seconds
        busy = less.cpu_seconds
    memory = more.peak_mib * 2**20 + (_kept(more.name, size) + lines) * (size.pool - pools[1])
    return CostEstimate(
        more.name, seconds, busy, memory, at_size("device_mib") * 2**20, at_size("disk")
    )


def extrapolate(less: tuple[float, float], more: tuple[float, float], pool: float) -> float:
    """What a stage takes at `pool` examples, from (examples, taken) of two smaller pools: a fixed
    cost, and a cost for each example. Neither is below 0: where the line says so, the larger pool
    or the two together decide.
    """
    (x0, y0), (x1, y1) = less, more
    slope = max(0.0, (y1 - y0) / (x1 - x0))
    fixed = y1 - slope * x1
    return fixed + slope * pool if fixed >= 0 else (y0 + y1) / (x0 + x1) * pool


def _kept(stage: str, size: PoolSize) -> float:
    """Bytes that are kept for every example once this stage is done, without galaxy's lines."""
    if stage == "predict":
        return 0
    families = [name.partition("(")[0] for name in size.families]
    last = stage.removeprefix("open ")
    opened = (
        families
        if stage == "take"
        else families[: families.index(last) + 1]
        if last in families
        else []
    )
    return KEPT + sum(KEPT_BY.get(family, 0) for family in opened)
