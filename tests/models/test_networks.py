"""The networks: shapes, names of their weights, numbers of parameters, where weights come from."""

from __future__ import annotations

import numpy as np
import parts
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tailor import MultiClass
from tailor.errors import InputError
from tailor.models import Notice, make_model
from tailor.models.efficientnet_lite import EfficientNetLite0, SameConv
from tailor.models.gpu import HalfPrecisionWeights, no_counting
from tailor.models.heads import PixelNet
from tailor.models.resnet import DEVIATION, MEAN, ResNet18
from tailor.models.small_cnn import SmallCNN
from tailor.models.weights import build, imagenet_weights, lite0_file, load_body, read_weights
from tailor.testing.toy_pools import ToyImages

needs_lite0 = parts.needs("EfficientNet-Lite0")


def fresh(make, seed=0):
    return build(make, torch.Generator().manual_seed(seed))


def parameters(net):
    return sum(p.numel() for p in net.parameters())


def test_resnet18_is_the_published_one():
    with torch.device("meta"):
        net = ResNet18(1000)
    assert parameters(net) == 11_689_512
    names = set(net.state_dict())
    assert len(names) == 122
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.conv1.weight",
        "layer2.0.downsample.0.weight",
        "layer2.0.downsample.1.num_batches_tracked",
        "layer4.1.bn2.bias",
        "fc.weight",
        "fc.bias",
    } <= names
    assert "layer1.0.downsample.0.weight" not in names


def test_lite0_is_the_published_one():
    with torch.device("meta"):
        net = EfficientNetLite0(1000)
    assert parameters(net) == 4_652_008
    assert len(net._blocks) == 16
    assert net._blocks[0]._expand_conv is None
    assert sum(block.residual for block in net._blocks) == 9


@pytest.mark.parametrize(
    ("make", "width"),
    [
        (lambda: ResNet18(5), 512),
        (lambda: ResNet18(5, stem="small"), 512),
        (lambda: EfficientNetLite0(5), 1280),
        (lambda: SmallCNN(5), 128),
    ],
    ids=["resnet18", "resnet18 small", "lite0", "small-cnn"],
)
def test_shapes(make, width):
    net = fresh(make).eval()
    x = torch.rand(2, 3, 33, 40, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert net.embed(x).shape == (2, width) == (2, net.width)
        assert net(x).shape == (2, 5)
    assert all(t.isfinite().all() for t in net.state_dict().values())


@pytest.mark.parametrize("make", [ResNet18, EfficientNetLite0, SmallCNN])
def test_running_means_follow_within_a_round(make):
    norms = [m for m in make(2).modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        for _ in range(60):
            norm.train()(torch.full((2, norm.num_features, 1, 1), 5.0))
        assert norm.running_mean.numpy() == pytest.approx(5, rel=0.01)


def test_small_stem_keeps_the_resolution():
    net = fresh(lambda: ResNet18(5, stem="small")).eval()
    with torch.no_grad():
        assert net.layer1(net.maxpool(net.conv1(torch.zeros(1, 3, 32, 32)))).shape[2:] == (32, 32)


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(8, 3, 2), (7, 3, 2), (8, 5, 2), (9, 5, 1), (10, 5, 2)]
)
def test_same_padding(size, kernel, stride):
    """ceil(size / stride) pixels, and an odd pixel of padding at the far end."""
    conv = fresh(lambda: SameConv(1, 1, kernel, stride))
    torch.nn.init.ones_(conv.weight)
    x = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(0))
    out = -(-size // stride)
    total = max((out - 1) * stride + kernel - size, 0)
    padded = np.pad(x[0, 0].numpy(), (total // 2, total - total // 2))
    slow = [
        [
            padded[i * stride : i * stride + kernel, j * stride : j * stride + kernel].sum()
            for j in range(out)
        ]
        for i in range(out)
    ]
    np.testing.assert_allclose(conv(x)[0, 0].detach().numpy(), slow, rtol=1e-5)


def test_first_weights_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    a, b, c = (fresh(lambda: SmallCNN(3), seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert not torch.equal(a["fc.weight"], c["fc.weight"])


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_weights_by_path(tmp_path, suffix):
    """All but the head is taken; the head is the task's."""
    weights_in_file = fresh(lambda: ResNet18(7), 9).state_dict()
    path = tmp_path / f"weights.{suffix}"
    save_file(weights_in_file, path) if suffix == "safetensors" else torch.save(
        weights_in_file, path
    )
    pool = ToyImages(np.arange(6) % 3)
    model = make_model("finetune", MultiClass(3), pool, weights=path, device="cpu")
    assert model.notices == []
    net = model.new_network(torch.Generator().manual_seed(0), (16, 16, 3)).net
    state = net.state_dict()
    assert torch.equal(state["layer3.1.conv2.weight"], weights_in_file["layer3.1.conv2.weight"])
    assert state["fc.weight"].shape == (3, 512)


def test_wrong_weights(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_weights(tmp_path / "nothing.pth")
    net = fresh(lambda: SmallCNN(3))
    with pytest.raises(InputError, match="weights don't fit ResNet18"):
        load_body(fresh(lambda: ResNet18(3)), net.state_dict())
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(InputError, match="can't be read as plain weights"):
        read_weights(tmp_path / "text.pth")
    with pytest.raises(InputError, match="no ImageNet weights of 'small-cnn'"):
        imagenet_weights("small-cnn")


def test_a_pickle_is_not_loaded(tmp_path):
    import pickle

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    (tmp_path / "trap.pth").write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(InputError, match="can't be read"):
        read_weights(tmp_path / "trap.pth")
    assert not (tmp_path / "sprung").exists()


def test_unreachable_weights_are_explained(monkeypatch):
    def fail(*args, **options):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fail)
    with pytest.raises(InputError, match=r"download\.pytorch\.org.*give its path"):
        imagenet_weights("resnet18")


def test_a_start_from_scratch_is_said():
    with pytest.warns(Notice, match="resnet18 starts from scratch"):
        model = make_model("finetune", MultiClass(3), ToyImages(np.arange(6) % 3), device="cpu")
    assert model.notices == ["resnet18 starts from scratch: no weights were given"]


@needs_lite0
def test_lite0_takes_its_weights():
    """All names agree, and the features are as alive as trained ones are."""
    state = read_weights(lite0_file())
    net = fresh(lambda: EfficientNetLite0(1000)).eval()
    assert set(net.state_dict()) == set(state)
    net.load_state_dict(state)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        features = net.embed(torch.rand(2, 3, 64, 64, generator=noise) * 2 - 1)
    assert features.shape == (2, 1280)
    assert 0.01 < features.mean() < 2
    assert (features[0] - features[1]).abs().mean() > 1e-3


@needs_lite0
def test_lite0_as_backbone_and_start():
    pool = ToyImages(np.arange(12) % 3)
    probe = make_model(
        "probe", MultiClass(3), pool, backbone="efficientnet-lite0(size=32)", steps=20, device="cpu"
    )
    assert probe.prepare() == {}
    probe.fit(np.arange(12), np.eye(3)[np.arange(12) % 3], seed=0)
    assert probe.predict(np.arange(12)).features.shape == (12, 1280)
    assert make_model("probe", MultiClass(3), pool, device="cpu").backbone.size == 128
    tuned = make_model(
        "finetune",
        MultiClass(3),
        pool,
        network="efficientnet-lite0",
        weights="imagenet",
        size=32,
        epochs=1,
        device="cpu",
    )
    tuned.fit(np.arange(4), np.eye(3)[np.arange(4) % 3], seed=0)
    assert tuned.predict(np.arange(12)).probs.shape == (12, 3)


def bf16_gradients(net, x, halves):
    net.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        if halves is None:
            logits, _ = net(x)
        else:
            halves.refresh()
            logits, _ = torch.func.functional_call(net, halves.half, (x,))
    logits.float().square().mean().backward()
    if halves is not None:
        halves.give_back()
    return {name: p.grad.clone() for name, p in net.named_parameters()}


@pytest.mark.parametrize("make", [SmallCNN, ResNet18, EfficientNetLite0])
def test_bf16_copies_give_autocasts_gradients(make):
    net = PixelNet(fresh(lambda: make(4)), MEAN, DEVIATION)
    x = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8)
    halves = HalfPrecisionWeights(net)
    with torch.no_grad():
        for weight in halves.full:
            weight.mul_(1.1)  # after the copies were made: refresh() must see it
    expected = bf16_gradients(net, x, None)
    gradients = bf16_gradients(net, x, halves)
    assert len(halves.half) == sum(p.ndim == 4 for p in net.parameters())
    for name, gradient in expected.items():
        assert gradient.dtype == torch.float32
        assert gradient.abs().sum() > 0
        assert torch.equal(gradient, gradients[name]), name


def test_batch_norms_that_need_their_count_keep_counting():
    net = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3, momentum=None)).train()
    with no_counting(net):
        net(torch.randn(4, 3, 2, 2))
    assert [int(norm.num_batches_tracked) for norm in net] == [0, 1]
    assert "0.num_batches_tracked" in net.state_dict()


@pytest.mark.filterwarnings("ignore:small-cnn starts")
def test_predictions_follow_a_model_that_is_trained_again():
    pool = ToyImages(np.arange(12) % 2)
    model = make_model(
        "finetune",
        MultiClass(2),
        pool,
        network="small-cnn",
        size=16,
        epochs=3,
        batch=4,
        device="cpu",
    )
    probs = []
    for flip in (False, True):
        labels = np.eye(2)[(np.arange(12) + flip) % 2]
        model.fit(np.arange(12), labels, seed=0)
        probs.append(model.predict(np.arange(12)).probs)
    assert np.abs(probs[0] - probs[1]).max() > 0.1
