"""A model folder, weights, arrays and caches from a stranger are data, and nothing else."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from hostile import canary, listener, stranger_run  # noqa: F401
from in_process import main_here
from PIL import Image

from tailor.cli import NOT_TRUSTED
from tailor.errors import InputError, TailorError
from tailor.models import make_model
from tailor.models.files import SETTINGS, WEIGHTS
from tailor.pools import open_pool
from tailor.run.project import Project
from tailor.task import MultiClass

TASK = MultiClass(["left", "right"])
LABELS = np.eye(2)[np.arange(12) % 2]


class Trap:
    """What a pickle of it does where it is loaded."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.fixture
def sklearn_model(tmp_path):
    """A pool, and a saved classifier of it in tmp_path / "model"."""
    folder = stranger_run(tmp_path / "run")
    pool = open_pool(folder / "points.npy")
    model = make_model("sklearn", TASK, pool)
    model.prepare()
    model.fit(np.arange(12), LABELS, seed=0)
    model.save(tmp_path / "model")
    return pool


def rewrite(folder, **changes):
    path = folder / SETTINGS
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"estimator": "sklearn.datasets.clear_data_home"},
        {"estimator": "os.system", "params": {"command": "true"}},
        {"params": {"memory": "/tmp/x"}},
        {"params": {"estimator__memory": "/tmp/x"}},
        {"params": {"__class__": "x"}},
        {"params": {"solver": "evil"}},
        {"params": {"C": {"__reduce__": []}}},
        {"params": ["C"]},
        {"params": "C"},
        {"params": None},
        {"seed": "x"},
        {"input": "something else"},
        {"model": "evil"},
        {"model": "probe"},
        {"format": 99},
        {"classes": ["a"]},
    ],
)
def test_settings_of_a_saved_model_choose_nothing(changes, sklearn_model, canary, tmp_path):  # noqa: F811
    rewrite(tmp_path / "model", **changes)
    model = make_model("sklearn", TASK, sklearn_model)
    with pytest.raises(InputError):
        model.load(tmp_path / "model")


def test_weights_of_a_saved_model_are_not_unpickled(sklearn_model, canary, tmp_path):  # noqa: F811
    (tmp_path / "model" / WEIGHTS).write_bytes(pickle.dumps(Trap(canary.written)))
    with pytest.raises(InputError, match="damaged"):
        make_model("sklearn", TASK, sklearn_model).load(tmp_path / "model")


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin", ".safetensors"])
@pytest.mark.parametrize("write", ["torch", "pickle"])
def test_weight_files_are_not_unpickled(suffix, write, canary, tmp_path):  # noqa: F811
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    path = tmp_path / f"weights{suffix}"
    if write == "torch":
        torch.save({"conv1.weight": Trap(canary.written)}, path)
    else:
        path.write_bytes(pickle.dumps(Trap(canary.written)))
    with pytest.raises(InputError, match="can't be read as plain weights"):
        make_model("finetune", TASK, open_pool(tmp_path), weights=str(path), size=8)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_not_unpickled(suffix, canary, tmp_path):  # noqa: F811
    trap = np.array([Trap(canary.written)] * 3, object)
    path = tmp_path / f"points{suffix}"
    if suffix == ".npy":
        np.save(path, trap, allow_pickle=True)
    else:
        np.savez(path, x=trap)
    with pytest.raises(InputError):
        open_pool(path)


def test_a_pickle_in_the_cache_of_a_run_is_not_loaded(canary, tmp_path):  # noqa: F811
    folder = stranger_run(tmp_path / "run")
    with_cache = Project(folder).session()
    with_cache.ask(2)
    with_cache.store.close()
    for path in [*(folder / "cache").rglob("*"), *(folder / "engine").rglob("*")]:
        if path.is_file():
            path.write_bytes(pickle.dumps(Trap(canary.written)))
    try:
        session = Project(folder).session()
        session.ask(2)
        session.store.close()
    except TailorError:
        pass  # a cache that is no cache may be an error
    assert not canary.written.exists()


BACKBONES = ["timm:resnet50", "timm:hf-hub:evil/x", "torchvision:resnet50", "resnet18", "evil"]


@pytest.mark.parametrize(
    ("key", "name"), [("model", "evil"), *(("backbone", backbone) for backbone in BACKBONES)]
)
def test_what_a_model_folder_names_is_asked_about(
    key,
    name,
    sklearn_model,
    canary,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    monkeypatch.chdir(tmp_path)
    folder = stranger_run(tmp_path / "other", {"model": {"name": "sklearn"}})
    rewrite(tmp_path / "model", **{key: name})
    card = {"task": "multi-class", "classes": ["left", "right"]}
    (tmp_path / "model" / "card.json").write_text(json.dumps(card))
    done = main_here("predict", "model", "--run", folder, "--out", "p.csv")
    assert done.returncode == NOT_TRUSTED, done.stderr
    assert name in done.stderr
    assert not (tmp_path / "p.csv").exists()
    assert "It is trusted" in main_here("trust", "model").stdout


@pytest.mark.parametrize(
    "name",
    [
        "timm:hf-hub:evil/x",
        "timm:hf_hub:evil/x",
        "timm:local-dir:/tmp/x",
        "timm:../x",
        "timm(model=hf-hub:evil/x)",
        "torchvision:/etc/passwd",
        "torchvision:os.system:x",
    ],
)
def test_networks_at_other_addresses_are_refused(name, tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match="no plain name of a model"):
        make_model("probe", TASK, open_pool(tmp_path), backbone=name)
