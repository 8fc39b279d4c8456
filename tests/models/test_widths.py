"""How many features a model gives is known before it is made."""

from __future__ import annotations

import numpy as np
import parts
import pytest

from tailor import MultiClass
from tailor.models import make_model
from tailor.models.backbones import default_backbone, make_backbone
from tailor.models.finetune import NETWORKS, network_class
from tailor.models.network_backbones import NetworkBackbone
from tailor.models.widths import feature_width
from tailor.testing.toy_pools import ToyImages, ToyTexts, ToyVectors, toy_labels

pytestmark = pytest.mark.filterwarnings("ignore::tailor.models.Notice")
TASK = MultiClass(3)
KINDS = np.arange(12) % 3
POOLS = {"image": ToyImages(KINDS), "text": ToyTexts(KINDS), "vector": ToyVectors(KINDS)}
SMALL = {"network": "small-cnn", "epochs": 1, "size": 8}


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("probe", "vector", {}),
        ("probe(head=hidden)", "vector", {}),
        ("probe(hidden=7)", "vector", {"head": "hidden"}),
        ("probe", "image", {"backbone": "pixels(size=5)"}),
        ("probe(backbone=pixels(grey=true))", "image", {}),
        ("probe", "text", {"backbone": "hashed-words"}),
        ("finetune", "image", SMALL),
        ("sklearn", "vector", {}),
        ("sklearn", "image", {}),
        ("sklearn", "text", {"backbone": "hashed-words(columns=32)"}),
    ],
    ids=str,
)
def test_it_is_what_the_model_gives(name, kind, options):
    pool = POOLS[kind]
    model = make_model(name, TASK, pool, device="cpu", **options)
    model.prepare()
    model.fit(np.arange(12), toy_labels(TASK, pool, np.arange(12)), seed=0)
    assert (
        feature_width(name, pool, device="cpu", **options)
        == model.predict(np.arange(3)).features.shape[1]
    )


@pytest.mark.parametrize("network", NETWORKS)
def test_of_whole_networks(network):
    net = network_class(network)(3)
    assert (
        feature_width("finetune", POOLS["image"], network=network, weights="nowhere.pt")
        == net.width
    )


@pytest.mark.parametrize("kind", POOLS)
def test_of_the_backbone_that_is_chosen(kind):
    """Whichever is installed."""
    pool = POOLS[kind]
    (features,) = default_backbone(pool, "cpu").embed(pool.read([0]))
    assert feature_width("probe", pool) == len(features)


@parts.needs("EfficientNet-Lite0")
def test_of_a_frozen_network():
    pool = POOLS["image"]
    (features,) = make_backbone("efficientnet-lite0(size=32)", pool, "cpu").embed(pool.read([0]))
    assert feature_width("probe", pool, backbone="efficientnet-lite0(size=32)") == len(features)


def test_nothing_is_loaded_for_it(monkeypatch):
    """Weights that are not here, or must be fetched, are not needed; what only the network knows
    stays open.
    """
    monkeypatch.setattr(NetworkBackbone, "__init__", None)
    pool = POOLS["image"]
    assert feature_width("probe", pool, backbone="resnet18(weights=nowhere.pt)") == 512
    for backbone in ("timm:vit_tiny", "torchvision:alexnet"):
        assert feature_width("probe", pool, backbone=backbone) is None
    assert feature_width("torch", POOLS["vector"]) is None
    assert feature_width("somebodys-own", POOLS["vector"]) is None
