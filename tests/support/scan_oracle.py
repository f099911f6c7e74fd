"""The scanner in Python: the native one's oracle.

One directory is in memory at a time.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from huai_native._native import Filter
from huai_schema.entries import ROOT_OWNER, Directory, File, Symlink
from huai_schema.limits import NAME_BYTES, PATH_BYTES
from huai_schema.paths import ROOT, RelPath, join
from huai_server.commit import remarks
from huai_server.scan.exclude import check_exclude
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import (
    KEEPS_CHANGING,
    OUT_OF_RANGE,
    TIME,
    ScanOptions,
)
from tests.support.scanned import Scanned

_TEMPORARY = re.compile(rb"\..+\.[A-Za-z0-9]{6}\Z", re.DOTALL)
_RESERVED = b".~tmp~"
MTIME_MAX = (1 << 63) - 1
TARGET_BYTES = 4095
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READINGS = 4
"""How often a directory that changes meanwhile is read before it is given up."""


class _ChangedError(Exception):
    """The directory changed while it was read."""


def scan(root: Path, options: ScanOptions) -> Scanned:
    """Scan `root`, as `tests.support.scanned.scan` does."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    scanned = Scanned({}, {}, Counter(), 0)
    try:
        for contents in _Tree(descriptor, options).walk(scanned.problems):
            scanned.entries.update({entry.path: entry for entry in contents.entries})
            scanned.problems.update(contents.problems)
            scanned.remarks.update(contents.remarks)
            scanned = scanned._replace(skipped=scanned.skipped + contents.skipped)
        return scanned
    finally:
        os.close(descriptor)


class _Tree:
    """The state that all directories of one scan share."""

    def __init__(self, root: int, options: ScanOptions) -> None:
        self._root = root
        self._options = options
        self._device = os.fstat(root).st_dev
        self._owners = OwnerNames()
        patterns = map(check_exclude, options.exclude)
        # The filter of rsync's --exclude, which other tests compare with the real rsync.
        self._excluding = Filter([(pattern, False, True, True, False) for pattern in patterns])

    def walk(self, problems: dict[RelPath, str]) -> Iterator["_Contents"]:
        waiting = [ROOT]
        while waiting:
            path = waiting.pop()
            try:
                contents = self._read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                problems[path] = _reason(error)
            except _ChangedError:
                problems[path] = KEEPS_CHANGING
            else:
                yield contents
                waiting.extend(join(path, name) for name in reversed(contents.children))

    def _read(self, path: RelPath) -> "_Contents":
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

    def _read_once(self, path: RelPath, descriptor: int) -> "_Contents":
        before = os.fstat(descriptor)
        contents = _Contents(self._directory(path, before), descriptor, before)
        if self._options.one_file_system and before.st_dev != self._device:
            return contents
        self._fill(contents)
        if os.fstat(descriptor).st_mtime_ns != before.st_mtime_ns:
            raise _ChangedError
        return contents

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
                elif name.lower() == _RESERVED:
                    contents.remarks[remarks.RESERVED] += 1
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
        elif stat.S_ISREG(status.st_mode) and _is_unfinished(name, status.st_mode):
            contents.remarks[remarks.TEMPORARY] += 1
        elif not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            contents.skipped += 1
        elif abs(status.st_mtime_ns) > MTIME_MAX or status.st_size < 0:
            contents.add_problem(name, OUT_OF_RANGE)
        elif stat.S_ISREG(status.st_mode):
            contents.entries.append(self._file(join(contents.path, name), status))
        else:
            target = os.readlink(name, dir_fd=contents.descriptor)
            contents.add_symlink(self._symlink(join(contents.path, name), target, status))

    def _left_out(self, contents: "_Contents", name: bytes, *, directory: bool) -> bool:
        return not self._excluding.reaches(join(contents.path, name), directory=directory)

    def _directory(self, path: RelPath, status: os.stat_result) -> Directory:
        mtime = max(-MTIME_MAX, min(MTIME_MAX, status.st_mtime_ns))
        mode = stat.S_IMODE(status.st_mode)
        return Directory(path, mtime, mode, *self._owned_by(status))

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


def _is_unfinished(name: bytes, mode: int) -> bool:
    """Return true if a regular file is one of rsync's temporary files."""
    return not mode & (stat.S_IRWXG | stat.S_IRWXO) and _TEMPORARY.match(name) is not None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class _Contents:
    """The contents of one directory that were read so far."""

    def __init__(self, directory: Directory, descriptor: int, status: os.stat_result) -> None:
        self.path = directory.path
        self.descriptor = descriptor
        self.children: list[bytes] = []
        self.entries: list[Directory | File | Symlink] = [directory]
        self.problems: dict[RelPath, str] = {}
        self.remarks: Counter[str] = Counter()
        self.skipped = 0
        if abs(status.st_mtime_ns) > MTIME_MAX:
            self.problems[self.path] = TIME

    def add_symlink(self, symlink: Symlink) -> None:
        """Add a symlink that the format can carry."""
        if 0 < len(symlink.target) <= TARGET_BYTES:
            self.entries.append(symlink)
        else:
            self.skipped += 1

    def add_problem(self, name: bytes, reason: str) -> None:
        """Remember what could not be looked at."""
        self.problems[join(self.path, name)] = reason
