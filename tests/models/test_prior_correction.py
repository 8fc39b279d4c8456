"""Corrections of a skewed prior: a folded head beside the formula, a choice beside a slow one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

from tailor import MultiClass, MultiLabel
from tailor.common.stacked_solver import StackedProblem, solve_stacked
from tailor.errors import InputError
from tailor.models import Notice, make_model
from tailor.models import cross_validation as cv
from tailor.models.convex import shrinkage, solve
from tailor.models.linear_cross_validation import choose_linear, principal_components
from tailor.models.losses import make_loss
from tailor.models.prior_correction import Correction, centred_log_shares
from tailor.pools.arrays import Arrays
from tailor.run.project import Project
from tailor.testing.toy_pools import ToyImages, toy_labels

pytestmark = pytest.mark.filterwarnings("ignore::tailor.models.Notice")


def skewed(n=400, d=6, classes=3, seed=0, labelled=60):
    """Vectors of overlapping classes, and rows to label of which most are of class 0."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    values = np.eye(classes, d)[truth] * 1.5 + rng.normal(size=(n, d))
    of_first = np.flatnonzero(truth == 0)[: int(0.8 * labelled)]
    others = np.flatnonzero(truth != 0)[: labelled - len(of_first)]
    return values.astype(np.float32), truth, np.concatenate([of_first, others])


def probe(values, task, **options):
    return make_model("probe", task, Arrays(values), device="cpu", **options)


def fitted(task=None, seed=0, **options):
    values, truth, rows = skewed()
    task = task or MultiClass(3)
    model = probe(values, task, **options)
    model.fit(rows, np.eye(3)[truth[rows]], seed=seed)
    return model


def logits_of(model):
    return np.log(model.predict(np.arange(len(model.pool))).probs.astype(np.float64))


def softmax(logits):
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("tau", [0.0, 0.25, 1])
def test_the_folded_head_is_the_formula(tau):
    _, truth, rows = skewed()
    counts = np.bincount(truth[rows], minlength=3)
    shares = (counts + 1) / (counts + 1).sum()
    plain = fitted()
    corrected = fitted(prior_correction=tau)
    expected = softmax(logits_of(plain) - tau * np.log(shares))
    probs = corrected.predict(np.arange(400)).probs
    np.testing.assert_allclose(probs, expected, atol=1e-5)
    assert corrected.describe()["correction"]["tau"] == tau


def test_temperature_and_shift_of_a_layer():
    layer = nn.Linear(4, 3)
    features = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    counts = np.array([7, 1, 0])
    with torch.no_grad():
        before = layer(features).numpy()
        Correction(tau=0.5, temperature=2.0).fold_into(layer, counts)
        after = layer(features).numpy()
    # log shares of the labelled classes, less their mean
    shift = 0.5 * np.array([np.log(8) - np.log(4), np.log(2) - np.log(4), 0])
    np.testing.assert_allclose(after, (before - shift) / 2, atol=1e-6)


def test_a_class_without_a_label_is_not_shifted():
    assert centred_log_shares(np.array([3, 0, 5]))[1] == 0
    assert centred_log_shares(np.zeros(3)).tolist() == [0, 0, 0]
    values, truth, _ = skewed()
    rows = np.flatnonzero(truth != 2)[:40]
    for option in (1.0, "auto"):
        model = probe(values, MultiClass(3), prior_correction=option)
        model.fit(rows, np.eye(3)[truth[rows]], seed=0)
        probs = model.predict(np.arange(400)).probs
        assert np.isfinite(probs).all()
        assert probs[:, 2].max() < 0.5


def test_none_changes_nothing():
    plain = fitted().predict(np.arange(400)).probs
    for word in ("none", None):
        same = fitted(prior_correction=word).predict(np.arange(400)).probs
        assert plain.tobytes() == same.tobytes()


def balanced_accuracy(model, truth):
    predicted = model.predict(np.arange(len(truth))).probs.argmax(1)
    return np.mean([(predicted[truth == k] == k).mean() for k in range(3)])


@pytest.mark.parametrize("option", [1.0, "auto"])
def test_skewed_labels_cost_less_balanced_accuracy(option):
    _, truth, _ = skewed()
    before = balanced_accuracy(fitted(), truth)
    after = balanced_accuracy(fitted(prior_correction=option), truth)
    assert after > before + 0.03


# The choice, beside separate fits one after the other


def slow_choice(task, features, targets, variances, seed):
    """Each fold and each variance fitted alone with torch's L-BFGS, every combination scored in a
    plain loop.
    """
    folds = cv.draw_folds(task, targets, np.random.default_rng(seed))
    losses = {}
    for variance in variances:
        held_out = []
        for fold in range(cv.FOLDS):
            seen = folds != fold
            layer = nn.Linear(features.shape[1], task.size)
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
            terms = seen.sum() * (1 if task.kind == "multi-class" else task.size)
            solve(
                layer,
                torch.from_numpy(features[seen]),
                torch.from_numpy(targets[seen]),
                make_loss(task, None),
                strength=shrinkage(features.shape[1], int(terms), variance),
                steps=500,
            )
            with torch.no_grad():
                logits = layer(torch.from_numpy(features[~seen])).double().numpy()
            held_out.append((logits, targets[~seen], targets[seen].sum(0)))
        for tau in cv.taus_for(task):
            for temperature in cv.TEMPERATURES:
                per_class = [[] for _ in range(task.size)]
                for logits, labels, counts in held_out:
                    shares = (counts + 1) / (counts + 1).sum()
                    adjusted = logits / temperature
                    if task.kind == "multi-class":
                        assert counts.all()
                        shifted = (logits - tau * np.log(shares)) / temperature
                        log_probs = np.log(softmax(shifted))
                        for row, label in zip(log_probs, labels):
                            per_class[label.argmax()].append(-row[label.argmax()])
                    else:
                        probs = 1 / (1 + np.exp(-adjusted))
                        correct = np.where(labels > 0, probs, 1 - probs)
                        per_class[0].extend(-np.log(correct).mean(1))
                means = [np.mean(values) for values in per_class if values]
                losses[variance, temperature, tau] = np.mean(means)
    return losses


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_the_choice_is_that_of_separate_fits(kind, seed):
    values, truth, rows = skewed(seed=seed)
    features = values[rows]
    if kind == "multi-class":
        task = MultiClass(3)
        targets = np.eye(3, dtype=np.float32)[truth[rows]]
    else:
        task = MultiLabel(2)
        targets = (features[:, :2] > 0.8).astype(np.float32)
    candidates = cv.Candidates(cv.taus_for(task), cv.TEMPERATURES, cv.VARIANCES)
    chosen = choose_linear(task, torch.from_numpy(features), targets, None, candidates, seed)
    losses = slow_choice(task, features, targets, cv.VARIANCES, seed)
    variance, _, tau = min(losses, key=losses.get)
    assert (chosen.logit_variance, chosen.tau) == (variance, tau)
    weights = np.full(len(rows), 1 / len(rows))
    if kind == "multi-class":
        weights = 1 / (3 * targets.sum(0)[truth[rows]])

    def penalised(temperature):
        """With the Gaussian prior of the temperature's logarithm, as of one of all examples."""
        prior = np.log(temperature) ** 2 / (2 * cv.LOG_TEMPERATURE_VARIANCE)
        return losses[variance, temperature, tau] + prior * (weights**2).sum()

    assert chosen.temperature == min(cv.TEMPERATURES, key=penalised)


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
def test_stacked_fits_are_separate_fits(kind):
    """Different rows, strengths and class weights for every fit."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 5)).astype(np.float32)
    task = MultiClass(3) if kind == "multi-class" else MultiLabel(3)
    targets = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 50)]
    if kind == "multi-label":
        targets = rng.integers(0, 2, (50, 3)).astype(np.float32)
    weights = np.array([1, 2, 5], np.float32)
    is_seen = rng.random((3, 50)) < 0.7
    strengths = np.array([0.5, 0.05, 0.005], np.float32)
    if kind == "multi-class":
        row_weights = is_seen * (targets @ weights)
        row_weights = row_weights / row_weights.sum(1, keepdims=True)
    else:
        row_weights = is_seen / (is_seen.sum(1, keepdims=True) * 3)
    ones = np.ones((50, 1), np.float32)
    problem = StackedProblem(
        features=torch.from_numpy(np.hstack([features, ones])),
        targets=torch.from_numpy(targets),
        row_weights=torch.from_numpy(row_weights.astype(np.float32)),
        strengths=torch.from_numpy(strengths),
        positive_weights=torch.from_numpy(weights) if kind == "multi-label" else None,
        multi_class=kind == "multi-class",
    )
    stacked = solve_stacked(problem, torch.zeros(3, 6, 3), steps=200)
    for fit in range(3):
        layer = nn.Linear(5, 3)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        solve(
            layer,
            torch.from_numpy(features[is_seen[fit]]),
            torch.from_numpy(targets[is_seen[fit]]),
            make_loss(task, torch.from_numpy(weights)),
            strength=float(strengths[fit]),
            steps=500,
        )
        expected = layer.weight.detach().T
        torch.testing.assert_close(stacked[fit, :-1], expected, atol=5e-3, rtol=5e-3)


def test_principal_components_keep_products():
    rng = np.random.default_rng(0)
    for shape in ((8, 20), (20, 8)):
        features = torch.from_numpy(rng.normal(size=shape).astype(np.float32))
        components = principal_components(features, 256)
        assert components.shape == (shape[0], 8)
        torch.testing.assert_close(
            components @ components.T, features @ features.T, atol=1e-4, rtol=1e-4
        )
        assert principal_components(features, 3).shape == (shape[0], 3)


def test_folds_spread_every_class():
    targets = np.eye(4)[[0] * 12 + [1] * 5 + [2] * 2 + [3]]
    folds = cv.draw_folds(MultiClass(4), targets, np.random.default_rng(0))
    classes = targets.argmax(1)
    per_fold = [np.bincount(folds[classes == k], minlength=5) for k in range(4)]
    assert all(counts.max() - counts.min() <= 1 for counts in per_fold)
    assert np.bincount(folds, minlength=5).tolist() == [4, 4, 4, 4, 4]


def test_single_labels_choose_the_temperature_but_not_the_strength():
    """Two classes that are told apart well, and labels of eight more, one each. Where other classes
    have none, a class without a label is likely, and a model must not be sure.
    """
    rng = np.random.default_rng(0)
    truth = np.array([0] * 24 + [1] * 8 + list(range(2, 10)))
    values = (np.eye(10, 12)[truth] * 3 + rng.normal(size=(40, 12))).astype(np.float32)
    chosen = {}
    for classes in (10, 30):
        model = probe(values, MultiClass(classes), prior_correction="auto")
        model.fit(np.arange(40), np.eye(classes)[truth], seed=0)
        chosen[classes] = model.correction
    assert chosen[10].temperature <= 1
    assert chosen[30].temperature > 1.5
    assert chosen[10].tau == chosen[30].tau


def test_singles_alone_still_choose_a_temperature():
    values = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    model = probe(values, MultiClass(12), prior_correction="auto")
    model.fit(np.arange(12), np.eye(12), seed=0)
    assert model.correction.tau == 1
    assert model.correction.temperature > 1


def test_a_sample_stands_for_many_labels():
    values, truth, _ = skewed(n=3000)
    model = probe(values, MultiClass(3), prior_correction="auto", logit_variance="auto")
    model.fit(np.arange(3000), np.eye(3)[truth], seed=0)
    assert 0.5 <= model.correction.temperature <= 2


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_choice_on_every_number_of_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model = fitted(prior_correction="auto", logit_variance="auto")
    finally:
        torch.set_num_threads(before)
    assert model.correction == fitted(prior_correction="auto", logit_variance="auto").correction


# Few labels


@pytest.mark.parametrize("options", [{}, {"logit_variance": "auto"}, {"head": "hidden"}])
@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_few_labels_choose_nothing_or_something_sane(count, options):
    values, truth, _ = skewed()
    for task in (MultiClass(3), MultiLabel(3)):
        model = probe(values, task, prior_correction="auto", **options)
        model.fit(np.arange(count), np.eye(3)[truth[:count]], seed=0)
        probs = model.predict(np.arange(400)).probs
        assert np.isfinite(probs).all()
        if task.kind == "multi-label":
            assert model.correction.tau == 0


def test_labels_of_one_class():
    values, _, _ = skewed()
    model = probe(values, MultiClass(3), prior_correction="auto", logit_variance="auto")
    model.fit(np.arange(30), np.eye(3)[np.zeros(30, int)], seed=0)
    assert model.predict(np.arange(400)).probs[:, 0].min() > 1 / 3


# One model everywhere


@pytest.mark.parametrize("head", ["linear", "hidden"])
def test_saved_and_loaded_with_its_correction(tmp_path, head):
    options = {"prior_correction": "auto", "logit_variance": "auto", "head": head}
    model = fitted(**options)
    model.save(tmp_path)
    values, _, _ = skewed()
    loaded = probe(values, MultiClass(3), **options)
    loaded.load(tmp_path)
    everything = np.arange(400)
    probs = model.predict(everything).probs
    assert loaded.predict(everything).probs.tobytes() == probs.tobytes()
    assert loaded.correction == model.correction
    assert loaded.describe() == model.describe()
    in_parts = [loaded.predict(part).probs for part in np.split(everything, 8)]
    np.testing.assert_allclose(np.concatenate(in_parts), probs, atol=1e-6)
    soft = np.full((400, 3), 1 / 3, np.float32)
    assert np.array_equal(loaded.finetune(soft, 1, seed=0), model.finetune(soft, 1, seed=0))


TOML = """
[task]
classes = ["a", "b", "c"]
[pool]
path = "{pool}"
label = "label"
[model]
name = "probe"
prior_correction = "auto"
[selection]
strategies = ["margin", "confidence"]
batch = 20
holdout = 0.0
[engine]
name = "{engine}"
shard = 64
"""


def test_shards_and_memory_see_the_same_probabilities(tmp_path):
    """What is chosen from them is the same, round by round."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    values, truth, _ = skewed(n=300)
    pool = tmp_path / "points.parquet"
    names = [["a", "b", "c"][k] for k in truth]
    pq.write_table(pa.table({"x": list(values), "label": names}), pool)
    asked = {}
    for engine in ("memory", "local"):
        folder = tmp_path / engine
        folder.mkdir()
        (folder / "tailor.toml").write_text(TOML.format(pool=pool, engine=engine))
        session = Project(folder).session()
        labels = session.pool.labels()
        asked[engine] = []
        for _ in range(3):
            ids = session.ask().ids
            session.tell({example_id: labels[example_id] for example_id in ids})
            asked[engine].append(ids)
    assert asked["memory"] == asked["local"]


def test_a_damaged_correction_is_refused(tmp_path):
    model = fitted(prior_correction=1.0)
    model.save(tmp_path)
    settings = json.loads((tmp_path / "model.json").read_text())
    for wrong in ("much", {"strength": 1}, {"tau": "1"}, {"tau": None}):
        settings["correction"] = wrong
        (tmp_path / "model.json").write_text(json.dumps(settings))
        with pytest.raises(InputError, match="is damaged: its correction is"):
            fitted().load(tmp_path)
    del settings["correction"]  # as a model saved before
    (tmp_path / "model.json").write_text(json.dumps(settings))
    model.load(tmp_path)
    assert model.correction == Correction()


@pytest.mark.parametrize("option", [1.0, "auto"])
def test_fine_tuned_networks_are_corrected(option):
    classes = np.array(([0] * 6 + [1, 2]) * 10)
    task = MultiClass(3)
    pool = ToyImages(classes)
    options = {"network": "small-cnn", "size": 12, "epochs": 2, "batch": 8, "device": "cpu"}
    labels = toy_labels(task, pool, np.arange(len(pool)))
    models = {}
    for prior_correction in ("none", option):
        model = make_model("finetune", task, pool, prior_correction=prior_correction, **options)
        model.fit(np.arange(len(pool)), labels, seed=0)
        models[prior_correction] = model
    correction = models[option].correction
    shifted = logits_of(models["none"]) - correction.shift(labels.sum(0))
    expected = softmax(shifted / correction.temperature)
    probs = models[option].predict(np.arange(len(pool))).probs
    np.testing.assert_allclose(probs, expected, atol=1e-4)


# Wrong values


@pytest.mark.parametrize("model", ["probe", "finetune"])
@pytest.mark.parametrize(
    "wrong", ["yes", "AUTO", -0.1, 1.5, np.nan, np.inf, True, [1.0], 1j, b"auto", object()]
)
def test_wrong_strengths_are_refused(model, wrong):
    pool = ToyImages(np.arange(6)) if model == "finetune" else Arrays(np.eye(3))
    with pytest.raises(InputError, match=r"prior_correction is .*: 'auto', 'none' or a number in"):
        make_model(model, MultiClass(3), pool, device="cpu", prior_correction=wrong)


@pytest.mark.parametrize("wrong", ["much", -1, 0, np.nan, True, [3.0], object()])
def test_wrong_variances_are_refused(wrong):
    with pytest.raises(InputError, match=r"logit_variance is .*: "):
        probe(np.eye(3), MultiClass(3), logit_variance=wrong)


def test_a_number_in_a_multi_label_task_says_that_it_does_nothing():
    values, truth, rows = skewed()
    with pytest.warns(Notice, match="changes nothing in a multi-label task"):
        model = probe(values, MultiLabel(3), prior_correction=0.5)
    model.fit(rows, np.eye(3)[truth[rows]], seed=0)
    plain = fitted(MultiLabel(3)).predict(rows).probs
    assert model.predict(rows).probs.tobytes() == plain.tobytes()
