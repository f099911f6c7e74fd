"""Upstreams that only an rsync daemon serves, without huai, and their downstreams."""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from huai_client.config import load as client_config
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import T0, Downstream, Upstream, rsync_would

BESIDE = (b"fullfiletimelist-all", b"fullfilelist", b"imagelist-all")
"""The lists that do not name each other."""
NOTHING = Path("/nonexistent")


class Plain(Upstream):
    """A tree that only an rsync daemon serves."""

    url: str
    log: Path

    def publish(self) -> None:
        """Tell that the tree changed, as far as this kind of upstream does."""

    def sizes(self) -> list[int]:
        """Return the number of bytes that the daemon sent on each connection."""
        return [int(size) for size in re.findall(r" sent (\d+) bytes", self.log.read_text())]

    @contextmanager
    def sending(self) -> Iterator[list[int]]:
        """Yield a list, which afterwards has the sizes of the connections within the block."""
        new: list[int] = []
        before = len(self.sizes())
        yield new
        new += self.sizes()[before:]


class Stamped(Plain):
    """One with a time stamp."""

    def publish(self) -> None:
        stamp = self.at(b"lastsync")
        number = int(stamp.read_bytes()) + 1 if stamp.exists() else 1
        self.put(b"lastsync", b"%d" % number, mtime=T0 + number * 10**9)


class Listed(Plain):
    """One with a list as `create-filelist` writes it."""

    def publish(self) -> None:
        self.at(BESIDE[0]).write_bytes(b"[Version]\n2\n\n[Files]\n%b\n[End]\n" % self.lines())
        self.at(BESIDE[1]).write_bytes(b"names\n")

    def lines(self) -> bytes:
        """Times are in nanoseconds, so that no test has to wait for the next second."""
        top = os.fsencode(self.tree)
        lines = b""
        for folder, names, files in os.walk(top):
            for name in sorted((*names, *files)):
                path = os.path.join(folder, name)
                if (relative := os.path.relpath(path, top)) in BESIDE:
                    continue
                status = os.lstat(path)
                kind = b"l" if os.path.islink(path) else b"d" if os.path.isdir(path) else b"f"
                newest = max(status.st_mtime_ns, status.st_ctime_ns)
                lines += b"%d\t%b\t%d\t%b\n" % (newest, kind, status.st_size, relative)
        return lines


class Recorded(Plain):
    """One with events as File::Rsync::Mirror::Recent records them, but none of directories."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.shortest = 10
        """The number of events in the file of the shortest interval."""
        self.dirtymark = 5.5
        self.events: list[dict[str, object]] = []
        self._states: dict[bytes, tuple[int, int, int]] = {}
        self._epochs = count(1_700_000_000)

    def publish(self) -> None:
        states = dict(self._files())
        for path in sorted(states.keys() | self._states.keys()):
            if states.get(path) != self._states.get(path):
                self.record(path, "new" if path in states else "delete")
        self._states = states
        for interval, number in (("1h", self.shortest), ("6h", 100)):
            self.at(b"RECENT-%b.json" % interval.encode()).write_text(self.recorded(number))

    def record(self, path: bytes, kind: str) -> None:
        """Add an event, in place of an older one of this path."""
        name = path.decode("latin-1")  # as Perl writes bytes
        self.events = [event for event in self.events if event["path"] != name]
        self.events.insert(0, {"epoch": next(self._epochs), "path": name, "type": kind})

    def recorded(self, number: int) -> str:
        """Return a file with this number of events."""
        events = self.events[:number]
        meta = {
            "aggregator": ["6h", "1d"],
            "dirtymark": self.dirtymark,
            "minmax": {"min": events[-1]["epoch"]},
        }
        return json.dumps({"meta": meta, "recent": events})

    def _files(self) -> Iterator[tuple[bytes, tuple[int, int, int]]]:
        for folder, names, files in os.walk(os.fsencode(self.tree)):
            for name in (*files, *names):
                path = os.path.relpath(os.path.join(folder, name), os.fsencode(self.tree))
                status = self.at(path).lstat()
                if not stat.S_ISDIR(status.st_mode) and not path.startswith(b"RECENT-"):
                    yield path, (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


class Place:
    """A daemon, and the trees that it serves."""

    def __init__(self, folder: Path, url: str, log: Path) -> None:
        self.folder, self.url, self.log = folder, url, log
        self._names = count(1)

    def upstream(self, kind: type[Plain] = Plain) -> Plain:
        """A new, empty tree."""
        name = f"m{next(self._names)}"
        up = kind(name, self.folder / "trees" / name, NOTHING)
        up.url, up.log = f"{self.url}/trees/{name}", self.log
        up.tree.mkdir()
        return up

    def downstream(self, up: Plain, **settings: object) -> Downstream:
        """A downstream that has nothing yet."""
        number = next(self._names)
        dest, root = self.folder / f"dest{number}", self.folder / f"client{number}"
        dest.mkdir()
        root.mkdir()
        values = {"url": up.url, "dest": str(dest), "timeout": 20, "list_every": 0}
        module = client_config.Module(**{**values, **settings})  # type: ignore[arg-type]
        client_config.add_module(root, up.name, module)
        return Downstream(up.name, dest, root)


@contextmanager
def serving_plainly(folder: Path, **options: Any) -> Iterator[Place]:
    """Serve the trees of an empty `folder`; `options` of the daemon."""
    (folder / "trees").mkdir(parents=True)
    log = folder / "rsyncd.log"
    with rsync_daemon({"trees": folder / "trees"}, log_file=str(log), **options) as url:
        yield Place(folder, url, log)


def differences(up: Plain, down: Downstream) -> str:
    """Return what rsync would still change; pipes and sockets are not mirrored."""
    return rsync_would(up, down, "-anciH", "--delete", "--no-D", "--exclude=.~tmp~")
