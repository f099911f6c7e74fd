"""A node of Garage on loopback, alone in its cluster.

A bucket that everybody may read is a website of its web endpoint, which listens on a socket of the
file system and tells buckets by the name of the host: the nginx in front says that name.
"""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.support.committing import ENVIRONMENT
from tests.support.nginx import Nginx, nginx
from tests.support.ports import free_port, logging_server
from tests.support.processes import SECONDS, until


class Garage:
    """A running one; commands reach it by its configuration."""

    complete = True

    def __init__(self, program: str, folder: Path, port: int, key: str) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._command = [program, "-c", str(_config(folder))]
        self._folder = folder
        self._key = key

    def make(self, bucket: str) -> None:
        """As an administrator makes one."""
        self._run("bucket", "create", bucket)
        self._run("bucket", "allow", "--read", "--write", bucket, "--key", self._key)
        self._run("bucket", "website", "--allow", bucket)

    def web(self, bucket: str) -> AbstractContextManager[Nginx]:
        """A web server that passes on what is asked for below `huai`."""
        target = f"proxy_pass http://unix:{_web(self._folder)}:/huai/;"
        return nginx(self._folder, location=f"proxy_set_header Host {bucket}; {target}")

    def answers(self) -> bool:
        """Return true if commands reach the node."""
        return self._ask("status").returncode == 0

    def _run(self, *words: str) -> None:
        done = self._ask(*words)
        assert done.returncode == 0, done.stderr

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *words]
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False
        )


@contextmanager
def garage(program: str, folder: Path, key: str, secret: str) -> Iterator[Garage]:
    """Start one in an empty folder, with a key that owns nothing yet."""

    def command(port: int) -> list[str]:
        _config(folder).write_text(_configuration(folder, port))
        node = ["server", "--single-node", "--default-access-key"]
        return [program, "-c", str(_config(folder)), *node]

    login = {"GARAGE_DEFAULT_ACCESS_KEY": key, "GARAGE_DEFAULT_SECRET_KEY": secret}
    with logging_server(command, folder / "log", ENVIRONMENT | login) as port:
        running = Garage(program, folder, port, key)
        until(running.answers)
        yield running


def _config(folder: Path) -> Path:
    return folder / "garage.toml"


def _web(folder: Path) -> Path:
    return folder / "web"


def _configuration(folder: Path, port: int) -> str:
    """Return the configuration of a node that answers S3's requests at a port."""
    return f"""
metadata_dir = "{folder}/metadata"
data_dir = "{folder}/data"
db_engine = "sqlite"
replication_factor = 1
rpc_bind_addr = "127.0.0.1:{free_port()}"
rpc_secret = "{"0" * 64}"
[s3_api]
s3_region = "us-east-1"
api_bind_addr = "127.0.0.1:{port}"
[s3_web]
bind_addr = "{_web(folder)}"
"""
