"""Small downstream trees for tests: their contents, a stand-in for staging, their plans."""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from blake3 import blake3

from huai_client.diff.candidates import diff_whole
from huai_client.plan.operations import Plan
from huai_client.plan.planner import make_plan, with_directories
from huai_client.tree import Places, Tree
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath, tree_order
from tests.support.comparing import selection_of

T0 = 1_600_000_000_123_456_789


def at(path: bytes) -> RelPath:
    return RelPath(path)


def content(path: bytes, size: int) -> bytes:
    return (hashlib.sha256(path).digest() * (size // 32 + 1))[:size]


def file(path: bytes, size: int = 10, mtime: int = T0, mode: int = 0o644) -> File:
    digest = blake3(content(path, size)).digest()
    return File(at(path), size, mtime, mode, digest=digest)


def linked(path: bytes, leader: File) -> File:
    return leader._replace(path=at(path), link=leader.path)


def directory(path: bytes, mtime: int = T0, mode: int = 0o755) -> Directory:
    return Directory(at(path), mtime, mode)


def symlink(path: bytes, target: bytes = b"nowhere", mtime: int = T0) -> Symlink:
    return Symlink(at(path), target, mtime)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    def key(entry: Entry) -> bytes:
        return tree_order(entry.path, directory=isinstance(entry, Directory))

    return sorted(entries, key=key)


class Staged:
    """Puts content where a transfer would have put it, when it is asked for."""

    _handles: ClassVar[deque[int]] = deque()
    """Handles of earlier callers, which may still use them, up to a limit."""

    def __init__(self, dest: Path) -> None:
        self._ready = dest / ".~tmp~" / "huai" / "ready"
        self._handle = -1

    def __call__(self, files: Sequence[File]) -> Places:
        names = {number: os.fsencode(self.path(each).name) for number, each in enumerate(files)}
        return Places(_native.Arrived(), self.handle, self.handle, names)

    @property
    def handle(self) -> int:
        if self._handle < 0:
            if not self._ready.exists():
                self._ready.mkdir(parents=True)
            self._handle = os.open(self._ready, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._handles.append(self._handle)
            if len(self._handles) > 100:
                os.close(self._handles.popleft())
        return self._handle

    def path(self, file: File) -> Path:
        self._ready.mkdir(parents=True, exist_ok=True)
        path = self._ready / hashlib.sha256(file.path).hexdigest()
        if not path.exists() or path.stat().st_size != file.size:
            path.write_bytes(content(file.path, file.size))
        return path


class ArrivedFiles(Staged):
    """Staged content as runs of rsync leave it: at its own path below the folder of a run."""

    def __init__(self, dest: Path, elsewhere: Iterable[bytes] = ()) -> None:
        """The files `elsewhere` came with another run."""
        super().__init__(dest)
        self._ready = dest / ".~tmp~" / "huai" / "incoming"
        self._elsewhere = frozenset(elsewhere)

    def __call__(self, files: Sequence[File]) -> Places:
        arrived = _native.Arrived()
        for file in files:
            self.path(file)
            arrived.add([file], self._run(file))
        return Places(arrived, self.handle, self.handle, {})

    def path(self, file: File) -> Path:
        path = self._ready / str(self._run(file)) / os.fsdecode(file.path)
        if not path.exists() or path.stat().st_size != file.size:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content(file.path, file.size))
        return path

    def _run(self, file: File) -> int:
        return 2 if file.path in self._elsewhere else 1


def plan_for(tree: Tree, wanted_entries: list[Entry]) -> Plan:
    """Plan the way from `tree` to `wanted_entries`, all in one stage."""
    diff = diff_whole(tree, [], selection_of(wanted_entries), delete_extraneous=True)
    plan = make_plan(diff.candidates, [], lambda planned: bytes(len(planned)))
    directories = [entry for entry in wanted_entries if isinstance(entry, Directory)]
    return replace(with_directories(plan, directories), stages=plan.stages[:1])


def open_handles() -> int:
    """How many file descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def fingerprint(root: Path) -> list[tuple[bytes, object]]:
    """Everything of a folder that a stray write would change, times of change included."""
    entries: list[tuple[bytes, object]] = []
    for folder, names, files in os.walk(os.fsencode(root)):
        for path in [folder, *(folder + b"/" + name for name in names + files)]:
            status = os.lstat(path)
            entries.append((path, (status[:7], status.st_mtime_ns, status.st_ctime_ns)))
    return sorted(entries, key=lambda item: item[0])
