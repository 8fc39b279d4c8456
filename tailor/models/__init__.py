"""What is trained: the probe, whole networks, and what the user brings."""

from __future__ import annotations

from typing import Any

from tailor.common.checks import check_instance
from tailor.models.base import Model, Notice, Prediction, ProgressCallback, quiet
from tailor.pools.base import Pool
from tailor.registry import Registry
from tailor.task import Task

__all__ = ["Model", "Notice", "Prediction", "ProgressCallback", "make_model", "quiet", "registry"]

registry: Registry[Model] = Registry(
    "model",
    "tailor.models",
    {
        "probe": "tailor.models.probe:Probe",
        "finetune": "tailor.models.finetune:Finetune",
        "sklearn": "tailor.models.sklearn_model:SklearnModel",
        "torch": "tailor.models.adapters:TorchModel",
    },
)


def make_model(
    model_or_name: str | tuple[str, dict[str, Any]] | Model | None,
    task: Task,
    pool: Pool,
    **options: Any,
) -> Model:
    """A model by name: "probe", "probe(head=hidden)", ("finetune", {"epochs": 5}); a Model is
    handed through.

    Options given apart win over those in the text. None is the probe. Raises UnknownName for a name
    or an option that there isn't, InputError for a value that a model refuses.
    """
    if isinstance(model_or_name, Model):
        return model_or_name
    check_instance(task, Task, "task", "a MultiClass or a MultiLabel")
    check_instance(pool, Pool, "pool", "a Pool (tailor.pools.open_pool makes one)")
    if model_or_name is None:
        model_or_name = "probe"
    name, named_options = registry.named(model_or_name)
    options = {**named_options, **options}
    # Two models take an object before their options.
    first = []
    for key in ("estimator", "module"):
        if key in options:
            first.append(options.pop(key))
    return registry.make(
        name,
        task,
        pool,
        *first,
        **options,
    )
