"""The scanner in Python: the native one's oracle.

Yields the same sequence as the native one.  One directory is in memory at a time.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.listing import Listing
from huai_schema.entries import ROOT_OWNER, Directory, File, Symlink
from huai_schema.limits import NAME_BYTES, PATH_BYTES
from huai_schema.paths import ROOT, RelPath, join
from huai_server.scan.exclude import check_exclude
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import (
    KEEPS_CHANGING,
    OUT_OF_RANGE,
    RESERVED,
    TEMPORARY,
    TIME,
    Problem,
    ScanOptions,
    root_error,
)
from tests.support import scan_exclude
from tests.support.scanned import IDENTITY, ScannedDirectory, Unreadable
from tests.support.schema.lines import encode_directory, encode_leaf

MTIME_MAX = (1 << 63) - 1
TARGET_BYTES = 4095
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READINGS = 4
"""How often a directory that changes meanwhile is read before it is given up."""
_LINKS_MAX = 0xFFFF_FFFF


class _Reading(NamedTuple):
    directory: ScannedDirectory
    children: list[bytes]


class _ChangedError(Exception):
    """The directory changed while it was read."""


def scan(root: Path, options: ScanOptions) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, as `huai_server.scan.scan` describes it."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise root_error(root, error) from None
    try:
        yield from _Tree(descriptor, options).walk()
    finally:
        os.close(descriptor)


class _Tree:
    """The state that all directories of one scan share."""

    def __init__(self, root: int, options: ScanOptions) -> None:
        self._root = root
        self._options = options
        self._device = os.fstat(root).st_dev
        self._owners = OwnerNames()
        self._excluding = scan_exclude.excluding(tuple(map(check_exclude, options.exclude)))

    def walk(self) -> Iterator[ScannedDirectory | Unreadable]:
        waiting = [ROOT]
        while waiting:
            path = waiting.pop()
            try:
                reading = self._read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Unreadable(path, _reason(error))
            except _ChangedError:
                yield Unreadable(path, KEEPS_CHANGING)
            else:
                yield reading.directory
                waiting.extend(join(path, name) for name in reversed(reading.children))

    def _read(self, path: RelPath) -> _Reading:
        descriptor = self._open(path)
        try:
            for _ in range(_READINGS):
                try:
                    return self._read_once(path, descriptor)
                except _ChangedError:
                    continue
        finally:
            os.close(descriptor)
        raise _ChangedError

    def _open(self, path: RelPath) -> int:
        """Component by component, so that no symlink is ever followed."""
        handle = os.open(".", os.O_PATH | _DIRECTORY, dir_fd=self._root)
        try:
            components = path.split(b"/") if path else [b"."]
            for name in components[:-1]:
                below = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=handle)
                os.close(handle)
                handle = below
            return os.open(components[-1], os.O_RDONLY | _DIRECTORY, dir_fd=handle)
        finally:
            os.close(handle)

    def _read_once(self, path: RelPath, descriptor: int) -> _Reading:
        before = os.fstat(descriptor)
        attributes = self._attributes(path, before)
        contents = _Contents(path, descriptor, before)
        if self._options.one_file_system and before.st_dev != self._device:
            return contents.finish(attributes)
        self._fill(contents)
        if os.fstat(descriptor).st_mtime_ns != before.st_mtime_ns:
            raise _ChangedError
        return contents.finish(attributes)

    def _fill(self, contents: "_Contents") -> None:
        with os.scandir(contents.descriptor) as listing:
            entries = {os.fsencode(entry.name): entry for entry in listing}
        for name in sorted(entries):
            try:
                directory = entries[name].is_dir(follow_symlinks=False)
                if self._left_out(contents, name, directory=directory):
                    continue
                if len(name) > NAME_BYTES or len(join(contents.path, name)) > PATH_BYTES:
                    contents.skipped += 1
                elif scan_exclude.is_reserved(name):
                    contents.leave_out(name, RESERVED)
                elif directory:
                    contents.children.append(name)
                else:
                    self._look_at(contents, name)
            except FileNotFoundError:
                continue
            except OSError as error:
                contents.add_problem(name, _reason(error))

    def _look_at(self, contents: "_Contents", name: bytes) -> None:
        status = os.stat(name, dir_fd=contents.descriptor, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if not self._left_out(contents, name, directory=True):
                contents.children.append(name)
        elif stat.S_ISREG(status.st_mode) and scan_exclude.is_unfinished(name, status.st_mode):
            contents.leave_out(name, TEMPORARY)
        elif not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            contents.skipped += 1
        elif abs(status.st_mtime_ns) > MTIME_MAX or status.st_size < 0:
            contents.add_problem(name, OUT_OF_RANGE)
        elif stat.S_ISREG(status.st_mode):
            contents.add_file(self._file(join(contents.path, name), status), status)
        else:
            target = os.readlink(name, dir_fd=contents.descriptor)
            contents.add_symlink(self._symlink(join(contents.path, name), target, status))

    def _left_out(self, contents: "_Contents", name: bytes, *, directory: bool) -> bool:
        return not self._excluding.reaches(join(contents.path, name), directory=directory)

    def _attributes(self, path: RelPath, status: os.stat_result) -> bytes:
        mtime = max(-MTIME_MAX, min(MTIME_MAX, status.st_mtime_ns))
        mode = stat.S_IMODE(status.st_mode)
        return encode_directory(Directory(path, mtime, mode, *self._owned_by(status)))

    def _file(self, path: RelPath, status: os.stat_result) -> File:
        mode = stat.S_IMODE(status.st_mode)
        return File(path, status.st_size, status.st_mtime_ns, mode, *self._owned_by(status))

    def _symlink(self, path: RelPath, target: bytes, status: os.stat_result) -> Symlink:
        mode = stat.S_IMODE(status.st_mode)
        return Symlink(path, target, status.st_mtime_ns, mode, *self._owned_by(status))

    def _owned_by(self, status: os.stat_result) -> tuple[bytes, bytes]:
        if not self._options.owners:
            return ROOT_OWNER, ROOT_OWNER
        return self._owners.user(status.st_uid), self._owners.group(status.st_gid)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class _Contents:
    """The contents of one directory that were read so far."""

    def __init__(self, path: RelPath, descriptor: int, status: os.stat_result) -> None:
        self.path = path
        self.descriptor = descriptor
        self._status = status
        self.children: list[bytes] = []
        self.skipped = 0
        self._leaves = bytearray()
        self._identities = bytearray()
        self._hardlinks = False
        self._unreadable = 0
        self._problems: list[Problem] = []
        self._left_out: list[Problem] = []
        if abs(status.st_mtime_ns) > MTIME_MAX:
            self._problems.append(Problem(path, TIME))

    def add_file(self, file: File, status: os.stat_result) -> None:
        """Add the line and the identity of a regular file."""
        ctime = max(-MTIME_MAX, min(MTIME_MAX, status.st_ctime_ns))
        links = min(status.st_nlink, _LINKS_MAX)
        self._hardlinks |= links > 1
        self._unreadable += not status.st_mode & stat.S_IROTH
        self._identities += IDENTITY.pack(
            *(status.st_dev, status.st_ino, file.size, file.mtime, ctime),
            *(links, len(self._leaves), file.mode, status.st_uid, status.st_gid),
        )
        self._leaves += encode_leaf(file)

    def add_symlink(self, symlink: Symlink) -> None:
        """Add the line of a symlink that the format can carry."""
        if 0 < len(symlink.target) <= TARGET_BYTES:
            self._leaves += encode_leaf(symlink)
        else:
            self.skipped += 1

    def add_problem(self, name: bytes, reason: str) -> None:
        """Remember what could not be looked at."""
        self._problems.append(Problem(join(self.path, name), reason))

    def leave_out(self, name: bytes, reason: str) -> None:
        """Remember what no snapshot can hold."""
        self._left_out.append(Problem(join(self.path, name), reason))

    def finish(self, attributes: bytes) -> _Reading:
        """Everything, as the scan yields it."""
        listing = Listing(self.path, attributes, bytes(self._leaves))
        directory = ScannedDirectory(
            *(listing, bytes(self._identities), self._hardlinks, self.skipped),
            *(tuple(self._problems), tuple(self._left_out), self._unreadable),
            *(self._status.st_dev, self._status.st_ino),
        )
        return _Reading(directory, self.children)
