"""A soak: an upstream that never rests, a downstream that follows it, and a hand that kills.

Every file says what it is (`sealed`), so that one look tells whether it is whole.  Some files never
change (`ANCHORS`): a downstream that had them once has them at every moment.
"""

import hashlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes import descendants
from tests.support.upstream import ENVIRONMENT, SECONDS, SERVER, Downstream, Upstream, ended

ANCHORS = 10
_STARTS = 400
_PAUSE = 0.05


def sealed(path: str, version: int, size: int) -> bytes:
    """Content that names its path, its version and its own digest."""
    body = f"{path}\n{version}\n".encode() * (size // (len(path) + 8) + 1)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def is_complete(content: bytes) -> bool:
    """Return true if a file holds one complete version."""
    digest, _, body = content.partition(b"\n")
    return hashlib.sha256(body).hexdigest().encode() == digest


class Busy:
    """An upstream whose administrator is never done."""

    def __init__(self, up: Upstream, chance: random.Random) -> None:
        self.up = up
        self._chance = chance
        self._version = 0
        for number in range(ANCHORS):
            self._write(f"anchor/{number}")
        for folder in range(6):
            for number in range(30):
                self._write(f"d{folder}/{number}")
        self.change()
        up.commit()

    def change(self) -> None:
        """Some changes, of any kind."""
        changes = [self._edit, self._add, self._delete, self._rename, self._touch]
        changes += [self._edit, self._link, self._copy]
        for _ in range(self._chance.randrange(1, 12)):
            self._chance.choice(changes)()
        if self._chance.random() < 0.3:
            self._rename_folder()

    def _write(self, path: str) -> None:
        self._version += 1
        size = self._chance.choice([10, 1_000, 200_000])
        self._replace(path, sealed(path, self._version, size))

    def _replace(self, path: str, content: bytes) -> None:
        # As updates are made: next to it, then renamed, so that no half file is ever there.
        name = os.fsencode(path)
        self.up.put(name + b".new", content, mtime=None).rename(self.up.at(name))

    def _files(self) -> list[Path]:
        files = sorted(path for path in self.up.tree.rglob("*") if path.is_file())
        return [path for path in files if path.parent.name != "anchor"]

    def _file(self) -> Path:
        return self._chance.choice(self._files())

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.up.tree))

    def _new(self) -> str:
        self._version += 1
        return f"d{self._chance.randrange(8)}/sub{self._chance.randrange(3)}/{self._version}"

    def _edit(self) -> None:
        self._write(self._name(self._file()))

    def _add(self) -> None:
        self._write(self._new())

    def _copy(self) -> None:
        self._replace(self._new(), self._file().read_bytes())

    def _link(self) -> None:
        target = self._file()
        self._version += 1
        target.with_name(f"l{self._version}").hardlink_to(target)

    def _delete(self) -> None:
        files = self._files()
        if len(files) > 100:
            self._chance.choice(files).unlink()

    def _rename(self) -> None:
        path = self._file()
        self._version += 1
        path.rename(path.with_name(f"r{self._version}"))

    def _touch(self) -> None:
        path = self._file()
        path.chmod(self._chance.choice([0o600, 0o644, 0o755]))
        os.utime(path)

    def _rename_folder(self) -> None:
        folders = sorted(path for path in self.up.tree.iterdir() if path.is_dir())
        path = self._chance.choice([path for path in folders if path.name != "anchor"])
        self._version += 1
        path.rename(path.with_name(f"d{self._version}"))


@dataclass
class Report:
    """The result of a soak."""

    syncs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    exits: Counter[int] = field(default_factory=Counter)
    files_read: int = 0
    mixed: list[str] = field(default_factory=list)
    """Published files that were not whole."""
    lost: list[str] = field(default_factory=list)
    """Files that never changed upstream, and were not there."""


class Reader(threading.Thread):
    """Reads the published tree all the time."""

    def __init__(self, dest: Path, report: Report) -> None:
        super().__init__(daemon=True)
        self._dest = dest
        self._report = report
        self._ended = threading.Event()
        self._anchored: set[str] = set()

    def run(self) -> None:
        """Until it is ended."""
        while not self._ended.wait(_PAUSE):
            self._look()

    def end(self) -> None:
        """Stop reading."""
        self._ended.set()
        self.join(SECONDS)

    def _look(self) -> None:
        for top, folders, files in os.walk(self._dest):
            folders[:] = [name for name in folders if name != ".~tmp~"]
            for name in files:
                with suppress(FileNotFoundError):
                    self._read(Path(top, name))
        self._anchors()

    def _read(self, path: Path) -> None:
        self._report.files_read += 1
        if not is_complete(path.read_bytes()):
            self._report.mixed.append(str(path.relative_to(self._dest)))

    def _anchors(self) -> None:
        for number in range(ANCHORS):
            name = f"anchor/{number}"
            if (self._dest / name).is_file():
                self._anchored.add(name)
            elif name in self._anchored:
                self._report.lost.append(name)


class Service:
    """A server process on a port of its own, that can be killed and started again."""

    def __init__(self, command: Callable[[int], list[str]]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._command = command(self.port)
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start it, if it does not run, and wait until it answers."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=ENVIRONMENT
            )
        for _ in range(_STARTS):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2):
                return
            time.sleep(_PAUSE)
        raise AssertionError(f"does not answer: {self._command}")

    def kill(self) -> None:
        """Kill it, and what it has started."""
        if self._process is not None:
            killed(self._process.pid, children=True)
            self._process.wait(SECONDS)

    def kill_children(self) -> None:
        """Kill only what it has started: the connections that it serves."""
        if self._process is not None:
            killed(self._process.pid, children=True, itself=False)


def ask(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal as soon as the program, and not only the interpreter, is there to take it."""
    for _ in range(_STARTS):
        with suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            caught = int(status.partition("\nSigCgt:")[2].split()[0], 16)
            if caught & 1 << signal.SIGTERM - 1:
                break
        time.sleep(_PAUSE / 10)
    process.send_signal(number)


def killed(process: int, *, children: bool, itself: bool = True) -> None:
    """SIGKILL to a process, and to those below it."""
    below = descendants(process) if children else set()
    for number in {*below, *({process} if itself else ())}:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def metadata_service(root: Path) -> Service:
    """`huai-server serve` of a state root."""
    return Service(lambda port: [*SERVER, "--root", str(root), "serve", "--port", str(port)])


def content_service(folder: Path, trees: Path) -> Service:
    """A stock rsync daemon with the module `trees`."""
    config = folder / "rsyncd.conf"
    root = os.geteuid() == 0
    lines = ["use chroot = yes", "uid = root", "gid = root"] if root else ["use chroot = no"]
    lines += ["reverse lookup = no", "log file = /dev/null", f"lock file = {folder}/rsyncd.lock"]
    lines += ["[trees]", f"path = {trees}"]
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--daemon", "--no-detach", "--address=127.0.0.1", f"--config={config}"]
    return Service(lambda port: ["rsync", *options, f"--port={port}"])


class Hand:
    """Disturbs a sync that runs, in one way of many."""

    def __init__(
        self, metadata: Service, content: Service, chance: random.Random, report: Report
    ) -> None:
        self._metadata = metadata
        self._content = content
        self._chance = chance
        self._report = report

    def disturb(self, process: subprocess.Popen[str]) -> int:
        """Let it run, disturb one process, wait; return how it ended."""
        time.sleep(self._chance.uniform(0.05, 1.5))
        if process.poll() is None:
            ways: dict[str, Callable[[], None]] = {
                "client": process.kill,
                "client TERM": lambda: ask(process, signal.SIGTERM),
                "client INT": lambda: ask(process, signal.SIGINT),
                "client's rsync": lambda: killed(process.pid, children=True, itself=False),
                "daemon's connections": self._content.kill_children,
                "daemon": self._content.kill,
                "server": self._metadata.kill,
                "all at once": lambda: self._all(process),
            }
            way = self._chance.choice(list(ways))
            ways[way]()
            self._report.kills[way] += 1
        # Soon enough for a run that tries again.
        self._metadata.up()
        self._content.up()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS)
        process.kill()
        return ended(process).code

    def _all(self, process: subprocess.Popen[str]) -> None:
        """Kill all processes as a machine that goes down does: none can clear up."""
        killed(process.pid, children=True)
        self._metadata.kill()
        self._content.kill()

    def commit(self, up: Upstream) -> None:
        """A commit that is killed at times; the next one makes good for it."""
        command = [*SERVER, "--root", str(up.root), "commit", up.name]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=ENVIRONMENT,
        )  # fmt: skip
        seconds = self._chance.uniform(0.1, 1) if self._chance.random() < 0.3 else SECONDS
        try:
            assert process.wait(seconds) in {0, 41}
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(SECONDS)
            self._report.kills["commit"] += 1


@contextmanager
def reading(down: Downstream, report: Report) -> Iterator[None]:
    """Run a reader for the duration of the context."""
    reader = Reader(down.dest, report)
    reader.start()
    try:
        yield
    finally:
        reader.end()
