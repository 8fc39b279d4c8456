"""The size of the round that a run's settings, or plain numbers, describe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tailor.capacity.forecast import ON_A_WHOLE_LINE, CostEstimate, altogether
from tailor.capacity.synthetic_pool import PoolSize
from tailor.common.memory import gib
from tailor.errors import InputError
from tailor.strategies import NARROW, make_arms

#: features of an example where nobody says: ResNet-18's
WIDTH = 512
#: what the made-up pools of an estimate can't give these
NOT_MEASURED = {"weak-supervision": "a model to fine-tune", "bald": "dropout passes"}


def planned_size(
    run: Path | None,
    examples: int | None,
    classes: int | None,
    features: int | None,
    batch: int | None,
    multilabel: bool,
    families: Sequence[str] | None,
) -> tuple[PoolSize, list[str]]:
    """The size, and what had to be assumed, in words. Numbers that are given win over the run's."""
    wanted = list(families or [])
    assumed = list[str]()
    if run is not None:
        from tailor.run.project import Project

        project = Project(run)
        settings = project.settings
        pool = project.pool()
        examples = examples or len(pool)
        features = project.feature_width(pool) if features is None else features
        if features is None:
            model = project.config.section("model")
            who = model.get("backbone", model["name"])
            assumed = [
                f"{who} is assumed to give {WIDTH} features an example: give --features where it "
                "gives others"
            ]
        if (dtype := project.config.section("engine").get("dtype", "float16")) != "float16":
            assumed.append(
                f"planned with numbers of 16 bits: this run keeps {dtype}, which takes more disk "
                "and time"
            )
        classes = classes or len(settings.classes)
        multilabel = settings.kind == "multi-label"
        batch = batch or settings.batch
        wanted = wanted or list(settings.strategies)
    if examples is None or classes is None:
        raise InputError("name a run's folder, or give --examples and --classes")
    batch = batch or 1000
    features = WIDTH if features is None else features
    if 2 * batch > examples:
        raise InputError(
            f"a batch of {batch} after {batch} labelled ones does not fit a pool of {examples}: "
            "give a smaller --batch"
        )
    wanted = wanted or NARROW["multi-label" if multilabel else "multi-class"]
    plain = [name.partition("(")[0] for name in wanted]
    missing = [name for name in plain if name in NOT_MEASURED]
    if missing:
        raise InputError(
            f"{missing[0]} needs {NOT_MEASURED[missing[0]]}, which can't be estimated: plan "
            "without it"
        )
    size = PoolSize("planned", examples, classes, multilabel, batch, features, tuple(wanted), 7)
    make_arms(size.families, size.task)  # names and kinds of task are checked
    return size, assumed


def in_memory(size: PoolSize) -> str:
    """What a run holds that keeps its predictions in memory, without an engine."""
    held = f"predictions take {gib(4 * size.pool * (size.classes + size.features))} of it"
    strategies = [arm.strategy for arm in make_arms(size.families, size.task)]
    if any(getattr(one, "pending", "split") != "split" for one in strategies):
        lines = ON_A_WHOLE_LINE * size.pool * size.classes
        held += (
            ", galaxy's lines, which hold all examples where labels come meanwhile, up to "
            f"{gib(lines)}"
        )
    return f'This is over shards, [engine] name = "local"; a run in memory holds more: {held}'


def shortages(found: Sequence[CostEstimate], disk: float, memory: float | None) -> list[str]:
    """What the machine has too little of. disk, memory: bytes that are free."""
    needed = altogether(list(found))
    said = []
    if needed.disk > disk:
        said.append(f"Too little disk: {gib(needed.disk)} are needed, {gib(disk)} are free")
    if memory is not None and needed.memory > memory:
        said.append(f"Too little memory: {gib(needed.memory)} are needed, {gib(memory)} are free")
    elif memory is not None and needed.memory + needed.disk > memory:
        said.append(
            f"The shards do not all stay in memory ({gib(memory)} free): reading them from disk "
            "comes on top"
        )
    return said
