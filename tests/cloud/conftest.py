"""Servers that speak S3 and Google Cloud Storage, on loopback, with one bucket for each test."""

from __future__ import annotations

import os
import sys
import uuid
from abc import ABC, abstractmethod
from pathlib import Path

import parts
import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("pools", "web")]
#: gcsfs would ask over gRPC what kind of bucket it has, which no emulator answers; it reads this
#: when it is imported
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")


@pytest.fixture(autouse=True)
def users_cache(monkeypatch, tmp_path):
    """Copies of shards go below this by default, and not into the home of whoever tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


@pytest.fixture(scope="session")
def s3_server():
    parts.need("S3")
    from moto.server import ThreadedMotoServer

    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


@pytest.fixture(scope="session")
def gs_server():
    parts.need("Google Cloud Storage")
    from gcp_storage_emulator.server import create_server

    with create_server("127.0.0.1", 0, in_memory=True) as started:
        host, port = started._api._httpd.server_address
        yield f"http://{host}:{port}"


class Bucket(ABC):
    """A new bucket, and how a pool gets at it.

    storage  options for fsspec
    env      what a user would set in the shell instead
    """

    scheme: str

    def __init__(self, endpoint: str) -> None:
        import fsspec

        self.storage, self.env = self._access(endpoint)
        self.name = f"pool-{uuid.uuid4().hex[:8]}"
        self._fs = fsspec.filesystem(self.scheme, skip_instance_cache=True, **self.storage)
        self._fs.mkdir(self.name)

    @abstractmethod
    def _access(self, endpoint: str) -> tuple[dict, dict]:
        """storage and env for the server at `endpoint`."""

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.name}"

    def put(self, name: str, content: bytes) -> None:
        self._fs.pipe_file(f"{self.name}/{name}", content)

    def put_file(self, name: str, path: Path) -> None:
        self.put(name, path.read_bytes())

    def remove(self, name: str) -> None:
        self._fs.rm_file(f"{self.name}/{name}")


class S3Bucket(Bucket):
    scheme = "s3"

    def _access(self, endpoint):
        env = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "eu-west-1",
        }
        where = {"endpoint_url": endpoint, "region_name": "eu-west-1"}
        return {"key": "test", "secret": "test", "client_kwargs": where}, env


class GsBucket(Bucket):
    scheme = "gs"

    def _access(self, endpoint):
        storage = {"token": "anon", "project": "test", "endpoint_url": endpoint}
        return storage, {"STORAGE_EMULATOR_HOST": endpoint}


@pytest.fixture
def s3_bucket(s3_server):
    return S3Bucket(s3_server)


@pytest.fixture(params=["s3", "gs"])
def bucket(request):
    server = request.getfixturevalue(f"{request.param}_server")
    return {"s3": S3Bucket, "gs": GsBucket}[request.param](server)


@pytest.fixture
def storage(bucket, monkeypatch):
    """The bucket, reached as from a user's shell."""
    import fsspec

    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class(bucket.scheme).clear_instance_cache()
    return bucket
