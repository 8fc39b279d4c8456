"""Writes small datasets in the true format of their official files."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import tarfile

import numpy as np
from PIL import Image
from scipy.io import savemat

RNG_SEED = 7


def picture(path, value=0, side=12):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), (value % 256, 80, 120)).save(path, "JPEG")


class Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, which is how the CIFAR archives were made."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def save_string(self, value):
        raw = value.encode("latin1") if isinstance(value, str) else value
        short = len(raw) < 256
        head = (
            pickle.SHORT_BINSTRING + bytes([len(raw)])
            if short
            else pickle.BINSTRING + struct.pack("<i", len(raw))
        )
        self.write(head + raw)
        self.memoize(value)

    dispatch[bytes] = save_string
    dispatch[str] = save_string


def python2_pickle(value):
    out = io.BytesIO()
    Python2Pickler(out, 2).dump(value)
    return out.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def cifar_pixels(n, seed=RNG_SEED):
    return np.random.default_rng(seed).integers(0, 256, (n, 3072), dtype=np.uint8)


def write_cifar10(folder, n=20):
    inner = folder / "cifar-10-batches-py"
    inner.mkdir(parents=True)
    for k, name in enumerate([*(f"data_batch_{b}" for b in range(1, 6)), "test_batch"]):
        content = {
            "batch_label": f"training batch {k + 1} of 5",
            "labels": [(i + k) % 10 for i in range(n)],
            "data": cifar_pixels(n, k),
            "filenames": [f"picture_{k}_{i}.png" for i in range(n)],
        }
        (inner / name).write_bytes(python2_pickle(content))
    names = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ]
    (inner / "batches.meta").write_bytes(
        python2_pickle({"num_cases_per_batch": n, "label_names": names, "num_vis": 3072})
    )
    return folder


def pack(folder, archive):
    """The archive as downloaded, and the folder gone."""
    with tarfile.open(archive, "w:gz") as opened:
        for file in sorted(folder.iterdir()):
            opened.add(file, f"{folder.name}/{file.name}")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def write_cifar100(folder, n=200):
    inner = folder / "cifar-100-python"
    inner.mkdir(parents=True)
    for k, name in enumerate(("train", "test")):
        fine = [i % 100 for i in range(n)]
        content = {
            "filenames": [f"{name}_{i}.png" for i in range(n)],
            "batch_label": "training batch 1 of 1",
            "fine_labels": fine,
            "coarse_labels": [f // 5 for f in fine],
            "data": cifar_pixels(n, k),
        }
        (inner / name).write_bytes(python2_pickle(content))
    names = [f"thing_{k:02d}" for k in range(100)]
    (inner / "meta").write_bytes(
        python2_pickle({"fine_label_names": names, "coarse_label_names": ["x"] * 20})
    )
    return folder


def write_svhn(folder, n=30):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(RNG_SEED)
    for name in ("train_32x32.mat", "test_32x32.mat"):
        x = rng.integers(0, 256, (32, 32, 3, n), dtype=np.uint8)
        y = (np.arange(n) % 10 + 1).astype(np.uint8)[:, None]  # 10 is the digit 0
        savemat(folder / name, {"X": x, "y": y}, do_compression=True)
    return folder


def idx(array):
    return (
        bytes((0, 0, 8, array.ndim))
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def write_fashion(folder, n=20, compressed=True):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(RNG_SEED)
    for part in ("train", "t10k"):
        arrays = {
            f"{part}-images-idx3-ubyte": rng.integers(0, 256, (n, 28, 28), dtype=np.uint8),
            f"{part}-labels-idx1-ubyte": (np.arange(n) % 10).astype(np.uint8),
        }
        for name, array in arrays.items():
            if compressed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))
    return folder


def write_kuzushiji(folder, n=987):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(RNG_SEED)
    for part, size in (("train", n), ("test", 60)):
        np.savez_compressed(
            folder / f"k49-{part}-imgs.npz", rng.integers(0, 256, (size, 28, 28), dtype=np.uint8)
        )
        np.savez_compressed(
            folder / f"k49-{part}-labels.npz", (np.arange(size) % 49).astype(np.uint8)
        )
    lines = [
        "index,codepoint,char",
        *(f"{k},U+{0x3042 + k:X},{chr(0x3042 + k)}" for k in range(49)),
    ]
    (folder / "k49_classmap.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_caltech(folder, each=1):
    inner = folder / "256_ObjectCategories"
    for k in range(1, 258):
        name = {1: "ak47", 256: "toad", 257: "clutter"}.get(k, f"thing-{k}")
        for i in range(1, each + 1 + (k == 257)):
            picture(inner / f"{k:03d}.{name}" / f"{k:03d}_{i:04d}.jpg", k)
    (inner / "198.thing-198" / "RENAME2").write_text("a stray")
    picture(inner / "056.thing-56" / "greg" / "056_0001.jpg")
    return folder


SYNSETS = [  # number, code, words, children: classes first, as in the kit; two of the same name
    (1, "n02119789", "kit fox, Vulpes macrotis", 0),
    (2, "n02012849", "crane", 0),
    (3, "n01440764", "tench, Tinca tinca", 0),
    (4, "n03126707", "crane", 0),
    (5, "n00001740", "entity", 2),
]


def write_imagenet(folder):
    kind = [
        ("ILSVRC2012_ID", "O"),
        ("WNID", "O"),
        ("words", "O"),
        ("gloss", "O"),
        ("num_children", "O"),
        ("children", "O"),
        ("wordnet_height", "O"),
        ("num_train_images", "O"),
    ]
    synsets = np.zeros((len(SYNSETS), 1), dtype=kind)
    for row, (number, code, words, children) in enumerate(SYNSETS):
        below = np.arange(1, children + 1, dtype=float)
        synsets[row, 0] = (float(number), code, words, "a gloss", float(children), below, 0.0, 3.0)
    data = folder / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    savemat(data / "meta.mat", {"synsets": synsets})
    for number, code, _, children in SYNSETS:
        for i in range(0 if children else number + 1):
            picture(folder / "train" / code / f"{code}_{i}.JPEG", number)
    for i in range(1, 7):
        picture(folder / "val" / f"ILSVRC2012_val_{i:08d}.JPEG", i)
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("4\n3\n2\n1\n1\n2\n")
    return folder


def write_celeba(folder, n=12, attributes=("Bald", "Male", "Young")):
    folder.mkdir(parents=True, exist_ok=True)
    files = [f"{i + 1:06d}.jpg" for i in range(n)]
    lines = [str(n), " ".join(attributes) + " "]
    for i, file in enumerate(files):
        picture(folder / "img_align_celeba" / file, i)
        lines.append(
            f"{file} " + " ".join(f"{1 if (i >> k) & 1 else -1:2d}" for k in range(len(attributes)))
        )
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    parts = [0 if i < n // 2 else 1 if i < 3 * n // 4 else 2 for i in range(n)]
    (folder / "list_eval_partition.txt").write_text(
        "".join(f"{f} {p}\n" for f, p in zip(files, parts))
    )
    return folder


def write_coco(folder):
    (folder / "annotations").mkdir(parents=True)
    kinds = [
        {"supercategory": "animal", "id": 17, "name": "cat"},
        {"supercategory": "x", "id": 1, "name": "person"},
        {"supercategory": "indoor", "id": 90, "name": "toothbrush"},
    ]
    for part in ("train2014", "val2014"):
        images = [
            {"id": i, "file_name": f"COCO_{part}_{i:012d}.jpg", "height": 12, "width": 12}
            for i in (9, 25, 30, 4)
        ]
        pairs = [(25, 1), (25, 1), (25, 90), (9, 17), (30, 1)]  # 4 has none
        boxes = {"bbox": [0, 0, 5, 5], "segmentation": [], "area": 25}
        annotations = [
            {"id": n, "image_id": i, "category_id": c, "iscrowd": int(i == 30)} | boxes
            for n, (i, c) in enumerate(pairs)
        ]
        whole = {
            "info": {},
            "licenses": [],
            "images": images,
            "annotations": annotations,
            "categories": kinds,
        }
        (folder / "annotations" / f"instances_{part}.json").write_text(json.dumps(whole))
        for image in images:
            picture(folder / part / image["file_name"], image["id"])
    return folder


def voc_xml(name, objects):
    inside = "".join(
        f"<object><name>{kind}</name><pose>Left</pose><truncated>0</truncated><difficult>{hard}</difficult>"
        "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
        "<part><name>head</name></part></object>"
        for kind, hard in objects
    )
    return (
        f"<annotation><folder>VOC2012</folder><filename>{name}.jpg</filename>{inside}</annotation>"
    )


def write_voc(folder, n=15):
    root = folder / "VOCdevkit" / "VOC2012"
    for inner in ("Annotations", "ImageSets/Main", "JPEGImages"):
        (root / inner).mkdir(parents=True)
    names = [f"2008_{i:06d}" for i in range(n)]
    (root / "ImageSets" / "Main" / "trainval.txt").write_text("\n".join(names) + "\n")
    for i, name in enumerate(names):
        objects = [
            ("person", 0),
            ("person", 0),
            ("cow" if i % 3 == 0 else "tvmonitor", int(i % 5 == 0)),
        ]
        (root / "Annotations" / f"{name}.xml").write_text(voc_xml(name, objects))
        picture(root / "JPEGImages" / f"{name}.jpg", i)
    return folder


CARS = [
    "Audi TTS Coupe 2012",
    "BMW X5 SUV 2007",
    "Chevrolet Express Van 2007",
    "Dodge Caravan Minivan 1997",
    "Aston Martin V8 Vantage Convertible 2012",
    "Ford Ranger SuperCab 2011",
]


def _annotations(files, classes, file_field):
    kind = [
        ("bbox_x1", "O"),
        ("bbox_y1", "O"),
        ("bbox_x2", "O"),
        ("bbox_y2", "O"),
        ("class", "O"),
        (file_field, "O"),
    ]
    array = np.zeros((1, len(files)), dtype=kind)
    for i, (file, k) in enumerate(zip(files, classes)):
        array[0, i] = (1, 1, 9, 9, np.uint8(k), file)
    return array


def _cells(names):
    cells = np.empty((1, len(names)), dtype=object)
    cells[0, :] = names
    return cells


def write_cars(folder, n=10, whole=False):
    """As two parts with a development kit, or as the one archive of all pictures."""
    classes = [i % len(CARS) + 1 for i in range(n)]
    folder.mkdir(parents=True, exist_ok=True)
    if whole:
        files = [f"car_ims/{i + 1:06d}.jpg" for i in range(n)]
        for i, file in enumerate(files):
            picture(folder / file, i)
        content = {
            "annotations": _annotations(files, classes, "relative_im_path"),
            "class_names": _cells(CARS),
        }
        savemat(folder / "cars_annos.mat", content)
        return folder
    kit = folder / "devkit"
    kit.mkdir()
    savemat(kit / "cars_meta.mat", {"class_names": _cells(CARS)})
    for part, name in (
        ("cars_train", "devkit/cars_train_annos.mat"),
        ("cars_test", "cars_test_annos_withlabels.mat"),
    ):
        files = [f"{i + 1:05d}.jpg" for i in range(n)]
        for i, file in enumerate(files):
            picture(folder / part / file, i)
        savemat(folder / name, {"annotations": _annotations(files, classes, "fname")})
    return folder


def write_parquet(path, classes, names, column="label", image="image", extra=None):
    """One split in the Hugging Face layout."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    images = []
    for i in range(len(classes)):
        out = io.BytesIO()
        Image.new("RGB", (8, 8), (i % 256, 0, 0)).save(out, "PNG")
        images.append({"bytes": out.getvalue(), "path": f"{i}.png"})
    own = {"names": list(names), "_type": "ClassLabel"}
    feature = own if column == "label" else {"feature": own, "_type": "Sequence"}
    table = pa.table({image: images, column: classes} | (extra or {}))
    features = {image: {"_type": "Image"}}
    if names:
        features[column] = feature
    meta = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(meta), path)
