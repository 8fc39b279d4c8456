"""What models say of their boundaries: last layers, and DeepFool through a network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tailor import InputError, MultiClass, MultiLabel
from tailor.models import make_model
from tailor.models.adapters import SklearnModel, TorchModel
from tailor.models.network_boundaries import deepfool_distances
from tailor.models.networks import Network
from tailor.pools.arrays import Arrays

RNG = np.random.default_rng(0)
CLASSES = np.arange(60) % 3
CENTRES = np.array([[2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, -1.0], [0.0, 0.0, 2.0, 0.0]])
POOL = Arrays(CENTRES[CLASSES] * [1, 5, 1, 20] + RNG.normal(size=(60, 4)))
LABELS = np.eye(3)[CLASSES]
EVERYTHING = np.arange(60)


def trained(name, task=None, labels=LABELS, **options):
    model = make_model(name, task or MultiClass(3), POOL, **options)
    model.fit(EVERYTHING, labels, seed=0)
    return model


class Layers(Network):
    """Any module, as the models wrap it."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, mask=None):
        return self.module(x), x


def test_one_step_through_a_linear_network_is_the_distance_to_its_nearest_boundary():
    torch.manual_seed(0)
    layer = nn.Linear(4, 5).double()
    inputs = torch.randn(20, 4, dtype=torch.float64)
    logits = layer(inputs).detach().numpy()
    weights = layer.weight.detach().numpy()
    for steps in (1, 4):
        measured = deepfool_distances(Layers(layer), inputs, steps)
        for row, distance in zip(logits, measured):
            own = row.argmax()
            expected = min(
                (row[own] - row[c]) / np.linalg.norm(weights[own] - weights[c])
                for c in range(5)
                if c != own
            )
            assert float(distance) == pytest.approx(expected)


def test_steps_through_a_bent_network_end_at_a_boundary():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3)).double()
    inputs = torch.randn(30, 4, dtype=torch.float64)
    near = deepfool_distances(Layers(net), inputs, 1)
    far = deepfool_distances(Layers(net), inputs, 30)
    assert not torch.allclose(near, far)
    # No ball of the measured size around an example may be all that there is: a boundary is met.
    directions = torch.randn(4000, 4, dtype=torch.float64)
    directions /= directions.norm(dim=1, keepdim=True)
    own = net(inputs).argmax(1)
    met = 0
    for x, label, distance in zip(inputs, own, far):
        around = net(x + 1.1 * distance * directions).argmax(1)
        met += int((around != label).any())
    assert met >= 28


def test_the_probe_measures_in_the_vectors_that_it_was_given():
    model = trained("probe", device="cpu")
    head = model.linear_head()
    deviation = 1 / model.net.scale.numpy()
    weights = head.weights / deviation  # of the raw vectors
    probs = model.predict(EVERYTHING).probs.astype(np.float64)
    logits = np.log(probs)
    distances = model.boundary_distances(EVERYTHING, 3)
    for row, distance in zip(logits, distances):
        own = row.argmax()
        expected = min(
            (row[own] - row[c]) / np.linalg.norm(weights[own] - weights[c])
            for c in range(3)
            if c != own
        )
        assert distance == pytest.approx(expected, rel=1e-2)


def test_the_ridge_of_the_probe_is_that_of_its_loss():
    """At the optimum the gradient of the summed loss is minus ridge times the weights."""
    model = trained("probe", device="cpu", steps=200)
    head = model.linear_head()
    prediction = model.predict(EVERYTHING)
    gradient = (prediction.probs - LABELS).T @ prediction.features
    np.testing.assert_allclose(gradient, -head.ridge * head.weights, atol=2e-2)
    assert trained("probe", device="cpu", head="hidden").linear_head().ridge is None


@pytest.mark.parametrize("classes", [2, 3])
def test_the_ridge_of_a_logistic_regression(classes):
    labels = np.eye(classes)[np.minimum(CLASSES, classes - 1)]
    model = SklearnModel(MultiClass(classes), POOL, "linear_model.LogisticRegression")
    model.estimator.set_params(C=0.1, max_iter=2000, tol=1e-8)
    model.fit(EVERYTHING, labels, seed=0)
    head = model.linear_head()
    assert head.ridge == pytest.approx(10)
    prediction = model.predict(EVERYTHING)
    gradient = (prediction.probs - labels).T @ prediction.features
    # Of two classes scikit-learn holds back one row, of which each class has half.
    factor = 1 if classes > 2 else 2
    np.testing.assert_allclose(gradient, -factor * head.ridge * head.weights, atol=2e-2)


def test_a_class_that_scikit_learn_has_not_seen_stays_out_of_reach():
    model = SklearnModel(MultiClass(4), POOL, "linear_model.LogisticRegression")
    model.fit(EVERYTHING, np.eye(4)[CLASSES], seed=0)
    head = model.linear_head()
    assert head.bias[3] < head.bias[:3].min() - 50
    assert not head.weights[3].any()


@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        ("ensemble.RandomForestClassifier", {"n_estimators": 3}),
        # Linear, but each class by itself: its probabilities are no softmax.
        ("linear_model.SGDClassifier", {"loss": "log_loss"}),
        ("naive_bayes.GaussianNB", {}),
    ],
)
def test_what_is_not_a_linear_head_is_none(estimator, params):
    model = SklearnModel(MultiClass(3), POOL, estimator, params=params)
    model.fit(EVERYTHING, LABELS, seed=0)
    assert model.linear_head() is None
    assert not model.can_measure_boundaries
    with pytest.raises(InputError, match=r"no gradients: take deepfool\(steps=0\)"):
        model.boundary_distances(EVERYTHING, 1)


def test_classes_that_all_have_or_none_has_are_constants_of_the_head():
    labels = np.stack([np.ones(60), np.zeros(60), CLASSES == 1], 1)
    model = SklearnModel(MultiLabel(3), POOL, "linear_model.LogisticRegression")
    model.fit(EVERYTHING, labels, seed=0)
    head = model.linear_head()
    assert head.bias[0] > 50
    assert head.bias[1] < -50


@pytest.mark.parametrize(("feature_layer", "has_head"), [("1", True), ("2", True), ("0", False)])
def test_the_last_layer_of_a_module_is_found_behind_its_features(feature_layer, has_head):
    """Behind layer 0 comes a rectifier: its output is not what the last layer takes."""
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    model = TorchModel(MultiClass(3), POOL, net, feature_layer=feature_layer, device="cpu")
    model.fit(EVERYTHING, LABELS, seed=0)
    assert (model.linear_head() is not None) == has_head
    assert np.isfinite(model.boundary_distances(EVERYTHING, 2)).all()
