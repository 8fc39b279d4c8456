"""A server that speaks S3, on loopback, with one bucket for each test."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pools"))


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("moto", reason="moto is not installed: pools on S3 were left out (pip install 'moto[server]')")
    pytest.importorskip("s3fs", reason="s3fs is not installed: pools on S3 were left out (pip install 'tailor[cloud]')")
    from moto.server import ThreadedMotoServer

    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    yield f"http://{host}:{port}"
    started.stop()


class Bucket:
    """A new bucket, and how a pool gets at it."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        where = {"endpoint_url": endpoint, "region_name": "us-east-1"}
        self.storage = {"key": "test", "secret": "test", "client_kwargs": where}
        self._client = boto3.client("s3", aws_access_key_id="test", aws_secret_access_key="test", **where)
        self.name = f"pool-{uuid.uuid4().hex[:8]}"
        self._client.create_bucket(Bucket=self.name)

    @property
    def address(self) -> str:
        return f"s3://{self.name}"

    def put(self, name: str, content: bytes) -> None:
        self._client.put_object(Bucket=self.name, Key=name, Body=content)

    def put_file(self, name: str, path: Path) -> None:
        self.put(name, path.read_bytes())

    def remove(self, name: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=name)


@pytest.fixture
def bucket(server):
    return Bucket(server)
