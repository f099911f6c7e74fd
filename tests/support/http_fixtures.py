"""A metadata repository to serve, and a real server process to serve it, for the HTTP tests.

Repositories are written by git itself, so that these tests need nothing of huai's own writers.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huai_schema.codec.commits import CommitInfo, Counts, Totals
from tests.support.prepared import Program, Started
from tests.support.processes import descendants, until

SECONDS = 60
PACK_BYTES = 32 << 20
"""The least that `large_repository` sends."""
ROOT = Path(__file__).parents[2]
_SERVER = Program("huai_server", "tests.support.http_server", ("-X", "faulthandler", "-W", "error"))
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
}


def git(*arguments: str | Path, stdin: bytes = b"", protocol: int = 2) -> str:
    """Run git without anybody's configuration; its output, or the test fails with its words."""
    command = ["git", "-c", f"protocol.version={protocol}", *map(str, arguments)]
    done = subprocess.run(
        command, input=stdin, capture_output=True, env=ENVIRONMENT, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, (command, done.stderr.decode())
    return done.stdout.decode().strip()


@dataclass
class Repository:
    """A bare repository and the serial of its next commit."""

    path: Path
    serial: int = 0

    @classmethod
    def create(cls, folder: Path, name: str) -> "Repository":
        """An empty one, in the folder that a test server serves."""
        path = folder / f"{name}.git"
        git("init", "--quiet", "--bare", "--initial-branch=main", path)
        return cls(path)

    def commit(self, *contents: bytes, at: int = 1_700_000_000) -> str:
        """Add one file for each content on top, at a time in seconds; the id of the new commit."""
        self.serial += 1
        totals = Totals(files=self.serial, directories=1, symlinks=0, bytes=5)
        info = CommitInfo("m", self.serial, totals, Counts(added=1), skipped=3)
        message = info.encode().encode()
        stamp = f"huai <huai@example.org> {at + self.serial} +0000"
        parts = [
            f"commit refs/heads/main\ncommitter {stamp}\ndata {len(message)}\n".encode(),
            message,
            b"\nfrom refs/heads/main^0\n" if self.serial > 1 else b"\n",
        ]
        for number, content in enumerate(contents):
            parts.append(f"M 100644 inline {self.serial}-{number}\n".encode())
            parts.append(b"data %d\n%s\n" % (len(content), content))
        git(
            "-C",
            self.path,
            "-c",
            "core.compression=0",
            "fast-import",
            "--quiet",
            "--force",
            stdin=b"".join(parts),
        )
        return self.head()

    def head(self) -> str:
        """The id of the newest commit."""
        return git("-C", self.path, "rev-parse", "refs/heads/main")


def large_repository(folder: Path) -> Repository:
    """One whose only commit is a pack of `PACK_BYTES`.

    As huai writes it: git would compress loose objects again for each answer.
    """
    repository = Repository.create(folder, "m")
    repository.commit(*(os.urandom(4 << 20) for _ in range(PACK_BYTES >> 22)))
    git("-C", repository.path, "-c", "core.compression=0", "repack", "-a", "-d", "-q", "--window=0")
    return repository


@dataclass
class Server:
    """A server process."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        """A raw connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def exchange(self, request: bytes) -> bytes:
        """Everything that comes back for raw bytes, until the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def children(self) -> set[int]:
        """Process ids of all that descend from the server, the unreaped ones included."""
        return descendants(self.process.pid)

    def until_no_children(self) -> None:
        """Wait until nothing descends from it any more."""
        until(lambda: not self.children())

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@contextlib.contextmanager
def slow_client(server: Server, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    """A raw connection with a small receive buffer, for a client that does not read."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.settimeout(SECONDS)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", server.port))
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Until the other side closes or resets."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 16):
            parts.append(chunk)
    return b"".join(parts)


@contextlib.contextmanager
def running(folder: Path, program: Path | None = None, **settings: object) -> Iterator[Server]:
    """Serve every `NAME.git` in `folder`, also those that appear later.

    `program`: a folder with another `git` in it for the server.
    """
    search = f"{program}:{ENVIRONMENT['PATH']}" if program else ENVIRONMENT["PATH"]
    process = Started(
        _SERVER,
        [str(folder), json.dumps(settings)],
        {**ENVIRONMENT, "PATH": search},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().split()
        assert line, "the server did not start"
        yield Server(process, int(line[-1]))
    finally:
        process.kill()
        process.wait(SECONDS)
        process.stdout.close()


class CountingGit:
    """A `git` that notes every start, and then is the real one or does what `then` says."""

    def __init__(self, folder: Path, then: str = "") -> None:
        self.folder = folder / "bin"
        self._notes = folder / "starts"
        self.folder.mkdir()
        self._notes.touch()
        script = self.folder / "git"
        body = then or f'exec {shutil.which("git")} "$@"'
        script.write_text(f"#!/bin/sh\necho start >> {self._notes}\n{body}\n")
        script.chmod(0o755)

    def starts(self) -> int:
        """How many processes there were."""
        return len(self._notes.read_text().splitlines())


def packet(data: bytes) -> bytes:
    """One data packet."""
    return b"%04x" % (len(data) + 4) + data


def ls_refs(agent: bytes = b"agent=test/1") -> bytes:
    """A request of protocol v2 for the branch's state."""
    head = packet(b"command=ls-refs\n") + packet(agent) + packet(b"object-format=sha1")
    return head + b"0001" + packet(b"ref-prefix refs/heads/\n") + b"0000"


def fetch_all(commit: str) -> bytes:
    """A request of protocol v2 for all that a commit holds."""
    request = packet(f"want {commit}\n".encode())
    options = packet(b"no-progress\n")
    head = packet(b"command=fetch") + packet(b"object-format=sha1") + b"0001"
    return head + options + request + packet(b"done\n") + b"0000"


def post(body: bytes, *headers: str, module: str = "m", length: int | None = None) -> bytes:
    """A whole HTTP request to `git-upload-pack`, protocol v2, one to a connection."""
    lines = [
        f"POST /git/{module}.git/git-upload-pack HTTP/1.1",
        "Host: test",
        "Connection: close",
        "Git-Protocol: version=2",
        f"Content-Length: {len(body) if length is None else length}",
        *headers,
    ]
    if not any(line.lower().startswith("content-type") for line in headers):
        lines.append("Content-Type: application/x-git-upload-pack-request")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def status(answer: bytes) -> int:
    """The status of a raw answer."""
    return int(answer.split(b" ", 2)[1])
