"""A real S3 server on loopback, for as long as tests need it, with buckets that everybody may read.

It is moto's, or s3s-fs if HUAI_TEST_S3 names that program, which checks signatures as well.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from tests.support.committing import ENVIRONMENT
from tests.support.nginx import Nginx, nginx
from tests.support.ports import Process, on_free_port
from tests.support.processes import SECONDS, end_process

SECRET = "not+to/be/said"  # noqa: S105 - of a server that ends with the test
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIATESTSOFHUAI",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
}
_GRACE = 10


class Bucket:
    """One of a server's."""

    def __init__(self, endpoint: str, name: str, folder: Path, *, plain: bool) -> None:
        self.endpoint = endpoint
        self.name = name
        self._folder = folder
        self._plain = plain
        self.complete = not plain
        """Whether the S3 server says how long to keep a file, and makes no bucket by itself."""

    @property
    def to(self) -> str:
        """As `publish --to` takes it."""
        return f"s3://{self.name}/huai"

    def web(self) -> AbstractContextManager[Nginx]:
        """A web server in front of it, which asks the S3 server, or has its files."""
        if self._plain:
            return nginx(self._folder / self.name / "huai")
        return nginx(self._folder, location=f"proxy_pass {self.endpoint}/{self.name}/huai/;")


class S3Server:
    """A running one."""

    def __init__(self, endpoint: str, folder: Path, *, plain: bool) -> None:
        self.endpoint = endpoint
        self._folder = folder
        self._plain = plain
        self._names = (f"bucket{number}" for number in count())

    def bucket(self) -> Bucket:
        """A new one."""
        name = next(self._names)
        if self._plain:
            (self._folder / name / "huai").mkdir(parents=True)
        else:
            statement = {
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": f"arn:aws:s3:::{name}/*",
            }
            policy = {"Version": "2012-10-17", "Statement": [statement]}
            _ask("PUT", f"{self.endpoint}/{name}")
            _ask("PUT", f"{self.endpoint}/{name}?policy", json.dumps(policy).encode())
        return Bucket(self.endpoint, name, self._folder, plain=self._plain)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start one."""
    program = os.environ.get("HUAI_TEST_S3", "")
    with tempfile.TemporaryDirectory(prefix="s3-") as name:
        folder = Path(name)
        process, port = on_free_port(partial(_start, program, folder), (folder / "log").read_text)
        try:
            yield S3Server(f"http://127.0.0.1:{port}", folder, plain=bool(program))
        finally:
            end_process(process, _GRACE)


def _start(program: str, folder: Path, port: int) -> Process:
    at = ["--host", "127.0.0.1", "--port", str(port)]
    keys = ["--access-key", CREDENTIALS["AWS_ACCESS_KEY_ID"], "--secret-key", SECRET]
    command = [program, *at, *keys, str(folder)] if program else ["-m", "moto.server", *at]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command if program else [sys.executable, *command],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _ask(method: str, url: str, body: bytes = b"") -> None:
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 (our own)
    with urllib.request.urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310 (the same)
        answer.read()
