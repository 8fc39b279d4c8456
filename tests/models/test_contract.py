"""The contract over every model, task and kind of pool."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tailor import MultiClass, MultiLabel
from tailor.models import make_model, registry
from tailor.models.adapters import SklearnModel, TorchModel
from tailor.models.backbones import registry as backbones
from tailor.testing.models_contract import MODEL_CHECKS

pytestmark = pytest.mark.filterwarnings("ignore::tailor.models.Notice")
TASKS = [MultiClass(3), MultiLabel(3)]


def probe(**options):
    return lambda task, pool: make_model(
        "probe", task, pool, steps=20, lr=0.03, device="cpu", **options
    )


def finetune(**options):
    options = {"network": "small-cnn", "epochs": 4, "batch": 8, "lr": 3e-3, "size": 12, **options}
    return lambda task, pool: make_model("finetune", task, pool, device="cpu", **options)


def module(task, pool):
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, task.size))
    torch.random.set_rng_state(torch_state)
    return TorchModel(task, pool, net, feature_layer="1", lr=1e-2, epochs=8, batch=8, device="cpu")


def forest(task, pool):
    from sklearn.ensemble import RandomForestClassifier

    return SklearnModel(task, pool, RandomForestClassifier(n_estimators=5))


MODELS = {
    "probe": (probe(), "vector"),
    "probe, hidden": (probe(head="hidden", hidden=16), "vector"),
    "probe, weighted, dropout": (probe(class_weights="balanced", dropout=0.3), "vector"),
    "probe, corrected": (probe(prior_correction="auto", logit_variance="auto"), "vector"),
    "probe, hidden, corrected": (
        probe(head="hidden", hidden=16, prior_correction="auto"),
        "vector",
    ),
    "probe, pixels": (probe(backbone="pixels(size=4)"), "image"),
    "probe, words": (probe(backbone="hashed-words(columns=64)"), "text"),
    "finetune": (finetune(), "image"),
    "finetune, flip, weighted": (
        finetune(augment="flip", dropout=0.1, class_weights="balanced"),
        "image",
    ),
    "finetune, corrected": (finetune(prior_correction="auto"), "image"),
    "torch": (module, "vector"),
    "sklearn": (lambda task, pool: make_model("sklearn", task, pool), "vector"),
    "sklearn, forest": (forest, "vector"),
    "sklearn, pixels": (lambda task, pool: make_model("sklearn", task, pool), "image"),
}


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.kind)
@pytest.mark.parametrize("name", MODELS)
def test_contract(name, task, check):
    make, kind = MODELS[name]
    check(make, task, kind)


def test_every_model_is_under_contract():
    assert {name.partition(",")[0] for name in MODELS} == set(registry.builtin)


def test_every_backbone_has_a_kind():
    for name in backbones.builtin:
        assert backbones.find(name).kinds <= {"image", "text", "vector"}
        assert np.dtype(backbones.find(name).dtype).kind == "f"
