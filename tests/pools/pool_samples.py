"""One or more small pools of every kind, each with something broken in it where that kind can have
it.
"""

from __future__ import annotations

import io
import json

import numpy as np
import parts
from PIL import Image

#: name of the pool in the registry -> {what it shows: function of a folder, giving what open_pool
#: takes}
SAMPLES: dict[str, dict] = {}


def sample(kind):
    def add(make):
        SAMPLES.setdefault(kind, {})[make.__name__] = make
        return make

    return add


def picture(seed=0, size=(12, 8), form="PNG", **options):
    """Encoded bytes of a small random picture, size as (width, height)."""
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(path, columns, metadata=None, **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns)
    if metadata:
        table = table.replace_schema_metadata(metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def class_label(column, names):
    return {
        "huggingface": json.dumps(
            {"info": {"features": {column: {"_type": "ClassLabel", "names": names}}}}
        )
    }


@sample("image-folder")
def image_folder(folder):
    root = folder / "images"
    put(root / "cat" / "a.png", picture(1))
    put(root / "dog" / "b.JPG", picture(2, form="JPEG"))
    put(root / "dog" / "cut.jpg", picture(3, (64, 64), "JPEG")[:600])
    put(root / "empty.png", b"")
    put(root / "notes.txt", "no picture")
    return root, {"labels": "folder"}


@sample("parquet")
def parquet_images(folder):
    images = [{"bytes": picture(i), "path": f"{i}.png"} for i in range(4)] + [
        {"bytes": b"broken", "path": None},
        None,
    ]
    columns = {"image": images, "label": [0, 1, 1, -1, None, 0]}
    path = folder / "p" / "train-00000-of-00001.parquet"
    return parquet(path, columns, class_label("label", ["cat", "dog"]), row_group_size=2), {}


@sample("parquet")
def parquet_vectors(folder):
    vectors = [[1.0, 2.0], None, [3.0, None], [], [4.0, 5.0], [1.0]]
    for part in range(2):
        columns = {
            "embedding": vectors,
            "name": [f"{part}-{i}" for i in range(6)],
            "labels": [["a"], [], None] * 2,
        }
        parquet(folder / "v" / f"{part}.parquet", columns)
    return folder / "v", {"key": "name"}


@sample("parquet")
def parquet_texts(folder):
    return parquet(folder / "t.parquet", {"text": ["one", None, "", "dört"], "n": [1, 2, 3, 4]}), {
        "max_side": 4
    }


@sample("arrays")
def npy_vectors(folder):
    data = np.arange(12.0).reshape(4, 3)
    data[2, 1] = np.nan
    np.save(folder / "x.npy", data)
    return folder / "x.npy", {}


@sample("arrays")
def npy_fortran(folder):
    np.save(folder / "f.npy", np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    return folder / "f.npy", {}


@sample("arrays")
def npz_images(folder):
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)
    np.savez(folder / "x.npz", images=images, y=np.arange(5) % 2, ids=np.array(list("abcde")))
    return folder / "x.npz", {}


@sample("arrays")
def array_in_memory(folder):
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 6), dtype=np.uint8)
    return images, {"ids": list("abcde"), "labels": np.eye(5)}


@sample("text")
def csv_texts(folder):
    rows = 'key,text,label\na,"two\nlines",x\nb,plain,\nbroken\nc,"say ""hi""",y\nd,,x\n,no key,x\n'
    return put(folder / "t.csv", rows), {"key": "key"}


@sample("text")
def jsonl_texts(folder):
    whole = ['{"text": "one", "labels": ["a", "b"]}', '{"text": "zwei ü", "labels": []}']
    lines = [whole[0], "{broken", '{"text": 3}', "", "[]", whole[1]]
    return put(folder / "t.jsonl", "\n".join(lines)), {}


class Items:
    """A map-style dataset, without torch: nothing but a length and items by index."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        if self.items[index] is OSError:
            raise OSError("the disk is gone")
        return self.items[index]


@sample("torch")
def torch_images(folder):
    import torch

    images = [
        torch.rand(3, 4, 5),
        torch.zeros(4, 5, 3, dtype=torch.uint8),
        Image.new("L", (5, 4)),
        OSError,
        "a text",
    ]
    return Items(
        [(image, n % 2) if image is not OSError else image for n, image in enumerate(images)]
    ), {"classes": ["cat", "dog"]}


@sample("torch")
def torch_vectors(folder):
    import torch

    return torch.utils.data.TensorDataset(torch.rand(4, 3), torch.tensor([0, 1, 1, 0])), {}


@sample("huggingface")
def hf_images(folder):
    parts.need("Hugging Face datasets")
    import datasets

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    images = [{"bytes": picture(i), "path": None} for i in range(3)] + [
        {"bytes": b"broken", "path": None}
    ]
    return datasets.Dataset.from_dict(
        {"image": images, "label": [0, 1, -1, 1]}, features=features
    ), {}


@sample("huggingface")
def hf_texts(folder):
    parts.need("Hugging Face datasets")
    import datasets

    return datasets.Dataset.from_dict(
        {"text": ["a", None, "c"], "id": ["x", "y", "z"], "label": ["p", "q", "p"]}
    ), {"key": "id"}


@sample("huggingface")
def hf_vectors(folder):
    parts.need("Hugging Face datasets")
    import datasets

    return datasets.Dataset.from_dict({"e": [[1.0, 2.0], None, [3.0], [4.0, 5.0]]}), {}


@sample("remote")
def remote_parquet(folder):
    root = folder / "bucket"
    parquet(root / "a.parquet", {"name": ["x", "y"], "text": ["one", "two"], "label": [0, 1]})
    parquet(root / "deep" / "b.parquet", {"name": ["z"], "text": ["three"], "label": [1]})
    return f"file://{root}", {"cache": str(folder / "cache"), "key": "name", "column": "text"}


@sample("remote")
def remote_pictures(folder):
    root = folder / "bucket"
    put(root / "cat" / "a.png", picture(1))
    put(root / "dog" / "cut.jpg", picture(3, (64, 64), "JPEG")[:600])
    put(root / "notes.txt", "no picture")
    return f"file://{root}", {"cache": str(folder / "cache"), "labels": "folder"}
