"""A real S3 server on loopback, for as long as tests need it, with buckets that everybody may read.

It is moto's, or the program that HUAI_TEST_S3 names: s3s-fs or Garage, which check signatures as
well.  What differs between them is in a `Service` of each.
"""

import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from tests.support.committing import ENVIRONMENT
from tests.support.garage import garage
from tests.support.nginx import Nginx, nginx
from tests.support.ports import logging_server
from tests.support.processes import SECONDS

# Garage takes no other forms of the two.
KEY = "GK0123456789abcdef01234567"
SECRET = "5ec2e7" * 10 + "0f1e"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
}


class Service(Protocol):
    """A running S3 server of one kind."""

    @property
    def endpoint(self) -> str:
        """Its URL, as server.toml takes it."""

    @property
    def complete(self) -> bool:
        """True if buckets have a lifecycle and are not created by a write."""

    def make(self, bucket: str) -> None:
        """Make a bucket that everybody may read."""

    def web(self, bucket: str) -> AbstractContextManager[Nginx]:
        """A web server with the folder `huai` of a bucket at its root."""


class Bucket:
    """One of a server's."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = name
        self.endpoint = service.endpoint
        self.complete = service.complete

    @property
    def to(self) -> str:
        """As `publish --to` takes it."""
        return f"s3://{self._name}/huai"

    def web(self) -> AbstractContextManager[Nginx]:
        """A web server in front of it."""
        return self._service.web(self._name)


class S3Server:
    """A running one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._names = (f"bucket{number}" for number in count())

    def bucket(self) -> Bucket:
        """A new one."""
        name = next(self._names)
        self._service.make(name)
        return Bucket(self._service, name)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start one."""
    program = os.environ.get("HUAI_TEST_S3", "")
    with (
        tempfile.TemporaryDirectory(prefix="s3-") as folder,
        _service(program, Path(folder)) as service,
    ):
        yield S3Server(service)


def _service(program: str, folder: Path) -> AbstractContextManager[Service]:
    match Path(program).name:
        case "":
            return _moto(folder)
        case "s3s-fs":
            return _s3s_fs(program, folder)
        case "garage":
            return garage(program, folder, KEY, SECRET)
        case other:
            raise AssertionError(f"HUAI_TEST_S3: how {other} is started is not known")


class _Moto:
    """It asks for no signature."""

    complete = True

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self._folder = folder

    def make(self, bucket: str) -> None:
        statement = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{bucket}/*",
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        _send_put(f"{self.endpoint}/{bucket}")
        _send_put(f"{self.endpoint}/{bucket}?policy", json.dumps(policy).encode())

    def web(self, bucket: str) -> AbstractContextManager[Nginx]:
        return nginx(self._folder, location=f"proxy_pass {self.endpoint}/{bucket}/huai/;")


@contextmanager
def _moto(folder: Path) -> Iterator[_Moto]:
    def command(port: int) -> list[str]:
        return [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]

    with logging_server(command, folder / "log", ENVIRONMENT) as port:
        yield _Moto(f"http://127.0.0.1:{port}", folder)


class _S3sFs:
    """A bucket is a folder, which only who signs may read: a web server reads the files."""

    complete = False

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self._folder = folder

    def make(self, bucket: str) -> None:
        (self._folder / bucket / "huai").mkdir(parents=True)

    def web(self, bucket: str) -> AbstractContextManager[Nginx]:
        return nginx(self._folder / bucket / "huai")


@contextmanager
def _s3s_fs(program: str, folder: Path) -> Iterator[_S3sFs]:
    def command(port: int) -> list[str]:
        at = ["--host", "127.0.0.1", "--port", str(port)]
        return [program, *at, "--access-key", KEY, "--secret-key", SECRET, str(folder)]

    with logging_server(command, folder / "log", ENVIRONMENT) as port:
        yield _S3sFs(f"http://127.0.0.1:{port}", folder)


def _send_put(url: str, body: bytes = b"") -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers, method="PUT")  # noqa: S310 (our own)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 (the same)
        answer.read()
