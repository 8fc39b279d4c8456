"""The size of the round that a run's settings, or plain numbers, describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailor.capacity.forecast import CostEstimate, altogether
from tailor.capacity.synthetic_pool import PoolSize
from tailor.common.memory import gib
from tailor.errors import InputError
from tailor.selection.pool_view import Need
from tailor.strategies import NARROW, expand_sets, make_arms, make_strategy

#: features of an example where nobody says: ResNet-18's
WIDTH = 512
#: examples a round where nobody says
BATCH = 1000
#: needs of a family that the made-up pools of an estimate can't meet, in words
NOT_MEASURED = {
    Need.FINETUNE: "a model to fine-tune",
    Need.DROPOUT: "dropout passes",
    Need.GRADIENTS: "the gradients of a network",
}


@dataclass
class _Wanted:
    """What is known of the round so far: what was given, then what the run says."""

    examples: int | None
    classes: int | None
    features: int | None
    batch: int | None
    multilabel: bool
    families: list[str]
    cover: bool


def planned_size(
    run: Path | None,
    examples: int | None,
    classes: int | None,
    features: int | None,
    batch: int | None,
    multilabel: bool,
    families: Sequence[str] | None,
    cover: bool = False,
    *,
    trust: bool = False,
) -> tuple[PoolSize, list[str]]:
    """The size, and what had to be assumed, in words. Numbers that are given win over the run's.

    cover  whether the arms only propose; a run that does so needs no word of it
    trust  whether a run from elsewhere is trusted with what it reaches
    """
    wanted = _Wanted(
        examples,
        classes,
        features,
        batch,
        multilabel,
        list(families or []),
        cover,
    )
    assumed = list[str]()
    if run is not None:
        assumed = _fill_from_run(wanted, run, trust)
    if wanted.examples is None or wanted.classes is None:
        raise InputError("name a run's folder, or give --examples and --classes")
    batch = wanted.batch or BATCH
    if 2 * batch > wanted.examples:
        raise InputError(
            f"a batch of {batch} after {batch} labelled ones does not fit a pool of "
            f"{wanted.examples}: give a smaller --batch"
        )
    if wanted.multilabel:
        kind = "multi-label"
    else:
        kind = "multi-class"
    width = wanted.features
    if width is None:
        width = WIDTH
    if wanted.cover and width == 0:
        raise InputError("a cover needs features: give --features, or plan without --cover")
    size = PoolSize(
        "planned",
        wanted.examples,
        wanted.classes,
        wanted.multilabel,
        batch,
        width,
        tuple(expand_sets(wanted.families or NARROW[kind], kind)),
        seed=7,
        cover=wanted.cover,
    )
    _check_families(size)
    return size, assumed


def _fill_from_run(wanted: _Wanted, run: Path, trust: bool) -> list[str]:
    """What was not given as a run has it -> what had to be assumed, in words."""
    from tailor.run.project import Project

    project = Project(run, trust=trust)
    settings = project.settings
    pool = project.pool()
    assumed = list[str]()
    wanted.examples = wanted.examples or len(pool)
    if wanted.features is None:
        wanted.features = project.feature_width(pool)
    if wanted.features is None:
        model = project.config.section("model")
        source = model.get("backbone", model["name"])
        assumed.append(
            f"{source} is assumed to give {WIDTH} features an example: give --features where it "
            "gives others"
        )
    dtype = project.config.section("engine").get("dtype", "float16")
    if dtype != "float16":
        assumed.append(
            f"planned with numbers of 16 bits: this run keeps {dtype}, which takes more disk "
            "and time"
        )
    wanted.classes = wanted.classes or len(settings.classes)
    wanted.multilabel = settings.kind == "multi-label"
    wanted.batch = wanted.batch or settings.batch
    wanted.families = wanted.families or list(settings.strategies)
    wanted.cover = wanted.cover or settings.cover
    return assumed


def _check_families(size: PoolSize) -> None:
    """Their names, the kinds of task they are for, and that the made-up pools have what they
    need.
    """
    for family in size.families:
        strategy = make_strategy(family)
        for need, what in NOT_MEASURED.items():
            if need in strategy.needs:
                raise InputError(
                    f"{strategy.name} needs {what}, which can't be estimated: plan without it"
                )
    make_arms(size.families, size.task)


def in_memory(size: PoolSize) -> str:
    """What a run holds that keeps its predictions in memory, without an engine."""
    numbers = size.classes + size.features
    predictions = 4 * size.pool * numbers
    held = f"predictions take {gib(predictions)} of it"
    for family in size.families:
        strategy = make_strategy(family)
        memory = strategy.held_in_memory(size.shape)
        if memory is not None:
            held += f", {memory.what}, up to {gib(memory.most)}"
    return f'This is over shards, [engine] name = "local"; a run in memory holds more: {held}'


def shortages(stages: Sequence[CostEstimate], disk: float, memory: float | None) -> list[str]:
    """What the machine has too little of. disk, memory: bytes that are free."""
    needed = altogether(list(stages))
    lines = []
    if needed.disk > disk:
        wanted = gib(needed.disk)
        lines.append(f"Too little disk: {wanted} are needed, {gib(disk)} are free")
    if memory is None:  # the system does not tell
        return lines
    if needed.memory > memory:
        wanted = gib(needed.memory)
        lines.append(f"Too little memory: {wanted} are needed, {gib(memory)} are free")
    elif needed.memory + needed.disk > memory:
        lines.append(
            f"The shards do not all stay in memory ({gib(memory)} free): reading them from disk "
            "comes on top"
        )
    return lines
