"""The states of a folder that a power cut may leave, from a record of how a program wrote it.

A `Recorder` looks at the folder before each changing system call of the program (as
`tests.support.system_calls.supervise` shows `CHANGING`).  `crash_states` then applies what Linux
promises, and no more: content and attributes are durable by fsync of the file, names by fsync of
their directory, both by syncfs; a rename is there as a whole or not at all; of what was not synced
any part may be there, in any order.  Its states are the extremes of that:

- all of it came to the disk,
- nothing but what was synced,
- every name, but of content that was not synced only the length (names that overtook data),
- every content, but only the synced names (a rename that was lost),
- nothing but what was synced, and one single change of names.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.system_calls import Call

_EARLY = ".~tmp~"
"""A sync of a handle in the staging area starts early, and does not wait for durability."""
_HANDLES = 4096
_LOOKS = 100
_TARGETS = {"clone": 0, "copy": 2, "send": 0, "write": 0}
"""Calls that write content, and which of their arguments is the handle of where."""

Name = tuple[int, str]
"""The inode of the directory, and the name in it."""


class Node(NamedTuple):
    """A file, a symlink or a directory."""

    data: bytes
    mode: int
    mtime: int
    """Nanoseconds."""


class State(NamedTuple):
    """The contents of a folder."""

    names: Mapping[Name, int]
    """To the inode; several names of one file are hard links."""
    nodes: Mapping[int, Node]
    top: int
    """The inode of the folder itself."""

    def inode(self, path: str) -> int | None:
        """The inode at a path from the top."""
        inode: int | None = self.top
        for name in path.split("/") if path else ():
            inode = None if inode is None else self.names.get((inode, name))
        return inode

    def paths(self, top: int | None = None) -> dict[str, int]:
        """Every path from `top`, those of directories before what is in them."""
        inside: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), inode in self.names.items():
            inside.setdefault(folder, []).append((name, inode))
        names: dict[str, int] = {}
        left = [("", self.top if top is None else top)]
        while left:
            path, folder = left.pop()
            for name, inode in sorted(inside.get(folder, ())):
                below = f"{path}/{name}" if path else name
                names[below] = inode
                if stat.S_ISDIR(self.nodes[inode].mode):
                    left.append((below, inode))
        return names


class Moment(NamedTuple):
    """One that a power cut may come at."""

    call: Call
    now: State
    durable: State


class Recorder:
    """Keeps what the folder looked like before each call, and what each call synced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._top = folder.stat().st_ino
        self._handles: dict[int, int] = {}
        self._nodes: dict[tuple[int, ...], Node] = {}
        self.moments: list[Moment] = []
        self._durable = self.look()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def before(self, call: Call) -> None:
        """Look at the folder; for `supervise`, answers None."""
        target = _TARGETS.get(call.name)
        if target is not None and not self._target(call, target).is_relative_to(self._folder):
            return
        moment = Moment(call, self.look(), self._durable)
        if not self.moments or self.moments[-1][1:] != moment[1:]:
            self.moments.append(moment)
        if call.name == "syncfs":
            synced = self._target(call)
            assert synced.stat().st_dev == self._folder.stat().st_dev
            if _EARLY not in synced.parts:
                self._durable = moment.now
        elif call.name == "sync":
            self._sync(os.stat(f"/proc/{call.thread}/fd/{call.arguments[0]}").st_ino, moment.now)

    def _target(self, call: Call, argument: int = 0) -> Path:
        """Return the path of the handle that is this argument."""
        return Path(os.readlink(f"/proc/{call.thread}/fd/{call.arguments[argument]}"))

    def _sync(self, inode: int, now: State) -> None:
        """fsync: a file's content and attributes, a directory's names and attributes."""
        if inode not in now.nodes:
            return  # of no folder of ours
        names = {name: at for name, at in self._durable.names.items() if name[0] != inode}
        new = {name: at for name, at in now.names.items() if name[0] == inode}
        names.update(new)
        hollow = {at: _hollow(now.nodes[at]) for at in new.values()}
        nodes = {**hollow, **self._durable.nodes, inode: now.nodes[inode]}
        self._durable = State(names, nodes, self._top)

    def look(self) -> State:
        """The folder now; other processes than the one that waits may go on meanwhile."""
        for _ in range(_LOOKS):
            with suppress(FileNotFoundError):
                return self._look()
        raise AssertionError("the folder never stands still")

    def _look(self) -> State:
        names: dict[Name, int] = {}
        nodes = {self._top: self._node(str(self._folder), self._folder.lstat())}
        left = [(self._top, str(self._folder))]
        while left:
            above, folder = left.pop()
            for entry in os.scandir(folder):
                status = entry.stat(follow_symlinks=False)
                names[above, entry.name] = status.st_ino
                nodes[status.st_ino] = self._node(entry.path, status)
                if entry.is_dir(follow_symlinks=False):
                    left.append((status.st_ino, entry.path))
        return State(names, nodes, self._top)

    def _node(self, path: str, status: os.stat_result) -> Node:
        """Read what has not been read: the folder is looked at some thousand times."""
        if status.st_ino not in self._handles:
            # As long as the handle is open, no other file gets its number.
            self._handles[status.st_ino] = os.open(path, os.O_PATH | os.O_NOFOLLOW)
            assert len(self._handles) < _HANDLES
        identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if identity not in self._nodes:
            data = b""
            if stat.S_ISLNK(status.st_mode):
                data = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                data = Path(path).read_bytes()
            self._nodes[identity] = Node(data, status.st_mode, status.st_mtime_ns)
        return self._nodes[identity]


def crash_states(moment: Moment) -> Iterator[State]:
    """The extremes of what a power cut at this moment may leave."""
    _, now, durable = moment
    hollow = {inode: _hollow(node) for inode, node in now.nodes.items()}
    synced = {**hollow, **durable.nodes}
    yield now
    yield State(durable.names, synced, now.top)
    yield State(now.names, synced, now.top)
    yield State(durable.names, {**synced, **now.nodes}, now.top)
    changes: dict[int, set[Name]] = {}
    for name, inode in now.names.items() ^ durable.names.items():
        changes.setdefault(inode, set()).add(name)
    for _, its in sorted(changes.items()):
        # All names of a file at once: a rename is whole.
        kept_names = {name: at for name, at in durable.names.items() if name not in its}
        come = {name: at for name, at in now.names.items() if name in its}
        yield State({**kept_names, **come}, synced, now.top)


def _hollow(node: Node) -> Node:
    """The attributes came to the disk, the content did not."""
    return node._replace(data=bytes(len(node.data))) if stat.S_ISREG(node.mode) else node


def lay(state: State, folder: Path) -> None:
    """Make the folder as in a state; it is there and empty."""
    laid: dict[int, Path] = {}
    paths = state.paths()
    for path, inode in paths.items():
        _make(folder / path, state.nodes[inode], laid.get(inode))
        laid[inode] = folder / path
    for path, inode in reversed(paths.items()):
        node, place = state.nodes[inode], folder / path
        if not stat.S_ISLNK(node.mode):
            place.chmod(stat.S_IMODE(node.mode))
        os.utime(place, ns=(node.mtime, node.mtime), follow_symlinks=False)


def _make(place: Path, node: Node, other: Path | None) -> None:
    if stat.S_ISDIR(node.mode):
        place.mkdir()
    elif other is not None:
        place.hardlink_to(other)
    elif stat.S_ISLNK(node.mode):
        place.symlink_to(os.fsdecode(node.data))
    else:
        place.write_bytes(node.data)
