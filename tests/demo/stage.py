"""The servers of the demo: an upstream and two downstreams on loopback, in one folder.

    FOLDER/mirror        the upstream's tree, served by a stock rsync daemon
    FOLDER/huai-copy     the downstream that huai-client keeps
    FOLDER/rsync-copy    the downstream that plain rsync keeps
    FOLDER/server, FOLDER/client    the state of both programs

Everything that crosses the network goes through `meter`.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.demo import meter
from tests.demo.processes import Argument, Processes, cpu_seconds, first_line, wait_until_greeted

MODULE = "demo"
PROGRAMS = Path(sys.executable).parent
"""The folder in which `./dev` has installed the console scripts."""
HOOK = Path(__file__).resolve().parents[2] / "hooks" / "post-sync"
RSYNC = ("rsync", "-aH", "--delete")
"""The command of the plain downstream."""


class Cost(NamedTuple):
    """The cost of a command."""

    seconds: float
    metadata: int
    """Bytes over HTTP, in both directions."""
    content: int
    """Bytes to and from the rsync daemon."""
    cpu: float
    """Processor seconds of the server."""


class Stage:
    """The upstream's services, and the commands of all sides."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        """Start the services; `mirror` may still be missing."""
        self.mirror, self.huai_copy, self.rsync_copy = (
            folder / name for name in ("mirror", "huai-copy", "rsync-copy")
        )
        self.folder = folder
        self._processes = processes
        self._counts = folder / "counts"
        port = _free_port()
        self._rsyncd = processes.service("rsyncd", *_rsyncd(folder, self.mirror, port))
        wait_until_greeted(self._rsyncd, ["rsync", f"rsync://127.0.0.1:{port}/"])
        self._server = processes.service(
            "huai-server", PROGRAMS / "huai-server", "serve", "--port=0", "--json"
        )
        http = json.loads(first_line(self._server))["port"]
        relay = processes.service(
            "meter", sys.executable, meter.__file__, self._counts, *map(str, (http, port, port))
        )
        ports = json.loads(first_line(relay))
        self.url = f"http://127.0.0.1:{ports[0]}"
        self.content_url, self.plain_url = (
            f"rsync://127.0.0.1:{one}/{MODULE}" for one in ports[1:]
        )

    def run(self, *command: Argument) -> float:
        """Run a command, and print it with its output; return its seconds."""
        print("$", " ".join(_short(word) for word in command))
        finished = self._processes.run(*_resolve(command))
        for line in finished.output.splitlines():
            print("   ", line)
        return finished.seconds

    def sync(self) -> Cost:
        """Run huai's downstream."""
        return self._measured("huai-client", "sync", MODULE)

    def rsync(self) -> Cost:
        """Run the plain downstream."""
        return self._measured(*RSYNC, f"{self.plain_url}/", f"{self.rsync_copy}/")

    def _measured(self, *command: Argument) -> Cost:
        os.sync()  # earlier writes must not slow down this command
        before, cpu = self._traffic(), self._cpu()
        seconds = self.run(*command)
        metadata, *content = (new - old for new, old in zip(self._traffic(), before, strict=True))
        return Cost(seconds, metadata, sum(content), self._cpu() - cpu)

    def _traffic(self) -> list[int]:
        return meter.read_counts(self._counts)

    def _cpu(self) -> float:
        return cpu_seconds(self._server) + cpu_seconds(self._rsyncd)


def environment(folder: Path) -> Mapping[str, str]:
    """Return an environment without the user's configuration, in which the hook finds huai."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C",
        "HUAI_ROOT": str(folder / "server"),
        "HUAI_CLIENT_ROOT": str(folder / "client"),
        "HUAI_SERVER": str(PROGRAMS / "huai-server"),
    }


def _rsyncd(folder: Path, mirror: Path, port: int) -> list[Argument]:
    config = folder / "rsyncd.conf"
    ids = "uid = root\ngid = root\n" if os.geteuid() == 0 else ""
    config.write_text(
        f"use chroot = no\nmunge symlinks = no\nreverse lookup = no\n{ids}"
        f"lock file = {folder}/rsyncd.lock\n[{MODULE}]\npath = {mirror}\nread only = yes\n"
    )
    return [
        *("rsync", "--daemon", "--no-detach", "--address=127.0.0.1"),
        *(f"--port={port}", f"--config={config}"),
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _resolve(command: tuple[Argument, ...]) -> list[Argument]:
    """Return a command with the paths of the programs that `./dev` has installed."""
    program = PROGRAMS / command[0]
    return [program if program.exists() else command[0], *command[1:]]


def _short(word: Argument) -> str:
    return os.path.relpath(word) if word == HOOK else str(word)
