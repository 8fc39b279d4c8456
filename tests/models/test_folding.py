"""Batch norms folded into convolutions: the same predictions, and nothing folded that must not
be.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tailor import MultiClass
from tailor.models.adapters import TorchModel
from tailor.models.efficientnet_lite import EfficientNetLite0
from tailor.models.folding import fold_batch_norms
from tailor.models.resnet import ResNet18
from tailor.models.small_cnn import SmallCNN
from tailor.models.weights import build
from tailor.testing.toy_pools import ToyImages


def used(make, classes=4):
    """A network whose batch norms have seen something."""
    net = build(lambda: make(classes), torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in (
                (module.weight, 0.5, 1.5),
                (module.bias, -0.5, 0.5),
                (module.running_mean, -0.5, 0.5),
                (module.running_var, 0.5, 2.0),
            ):
                nn.init.uniform_(tensor, low, high, generator=generator)
    return net


def pictures():
    return torch.randn(3, 3, 48, 48, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("make", [SmallCNN, ResNet18, EfficientNetLite0])
def test_a_folded_network_says_the_same_without_batch_norms(make):
    net = used(make).eval()
    x = pictures()
    folded = fold_batch_norms(net)
    with torch.no_grad():
        features = net.embed(x)
        folded_features = folded.embed(x)
        features_after = net.embed(x)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in folded.modules())
    assert features.std() > 0.01
    torch.testing.assert_close(folded_features, features, rtol=1e-3, atol=1e-4)
    assert torch.equal(features, features_after)  # the network itself is as it was


def test_a_network_that_says_nothing_of_its_norms_is_left_alone():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    assert fold_batch_norms(net) is net


class Between(ResNet18):
    """Has something between its first convolution and its first batch norm."""

    def embed(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x).abs())))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3))


class ShiftedNorm(nn.BatchNorm2d):
    def forward(self, input):
        return super().forward(input + 1)


#: what somebody may have done to a network of ours
CHANGES = {
    "a class of its own": lambda net: setattr(net, "__class__", Between),
    "another norm": lambda net: setattr(net, "bn1", nn.GroupNorm(8, 64)),
    "an own batch norm": lambda net: setattr(net, "bn1", ShiftedNorm(64)),
    "the batch's own statistics": lambda net: setattr(
        net, "bn1", nn.BatchNorm2d(64, track_running_stats=False)
    ),
    "a norm without weights": lambda net: setattr(net, "bn1", nn.BatchNorm2d(64, affine=False)),
    "a convolution with a bias": lambda net: setattr(net, "conv1", nn.Conv2d(3, 64, 7, 2, 3)),
    "a weight that is computed": lambda net: nn.utils.parametrizations.weight_norm(net.conv1),
    "a hook before the norm": lambda net: net.bn1.register_forward_pre_hook(
        lambda _, given: (given[0] + 1,)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_in_a_network_is_not_folded(change):
    net = used(ResNet18)
    x = pictures()
    CHANGES[change](net)
    folded = fold_batch_norms(net.eval())
    with torch.no_grad():
        torch.testing.assert_close(folded.embed(x), net.embed(x), rtol=1e-3, atol=1e-4)
    assert type(folded.bn1) is type(net.bn1)
    assert isinstance(folded.layer1[0].bn1, nn.Identity)  # the rest is folded all the same


def test_a_class_that_says_its_norms_again_is_folded():
    class Wider(SmallCNN):
        width = 256
        conv_norm_pairs = SmallCNN.conv_norm_pairs

    assert not any(isinstance(m, nn.BatchNorm2d) for m in fold_batch_norms(Wider()).modules())


@pytest.mark.parametrize("layer", ["convs.2", "norms.2"])
def test_a_layer_that_somebody_listens_to_is_not_folded(layer):
    """Between a convolution and its batch norm, too, an own network's features are what it gives
    there.
    """
    net = used(SmallCNN, 2)
    pool = ToyImages(np.arange(6) % 2)
    model = TorchModel(
        MultiClass(2), pool, net, feature_layer=layer, size=16, epochs=1, device="cpu"
    )
    model.fit(np.arange(6), np.eye(2)[np.arange(6) % 2], seed=0)
    with torch.no_grad():
        logits, features = model.net(model.source.take(torch.arange(6)))
    prediction = model.predict(np.arange(6))
    torch.testing.assert_close(
        torch.from_numpy(prediction.features), features, rtol=1e-3, atol=1e-4
    )
    torch.testing.assert_close(
        torch.from_numpy(prediction.probs), logits.softmax(1), rtol=1e-3, atol=1e-4
    )
