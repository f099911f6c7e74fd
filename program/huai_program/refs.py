"""The refs of a metadata repository: names for commits, one file each (gitrepository-layout(5)).

Every git can read them; refs that a git has packed are read, too.  Rule: a ref is replaced in one
durable step, so that a power cut leaves the old commit or the new one, and under git's own lock, so
that a concurrent `git pack-refs` cannot lose a commit.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from huai_program.durable import sync_folder
from huai_program.locking import LockedError, take_within

_LOCK = ".lock"
_OWN_LOCK = ".huai.lock"
"""The suffix of a second name of our locks, which tells them from git's."""
_WAIT_SECONDS = 30.0
"""The longest wait: git holds a lock while it writes one file."""
_COMMIT = re.compile("[0-9a-f]{40}")
_PACKED = re.compile(r"([0-9a-f]{40}) (refs/[^ ]+)")


class DamagedRefError(ValueError):
    """An error for a ref without a commit; its arguments are the ref and the reason."""

    def __str__(self) -> str:
        return " ".join(map(str, self.args))


class Refs:
    """The refs of the bare repository at `path`.  Each method may raise an `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = path / "packed-refs"

    def all(self) -> dict[str, str]:
        """Return the commits (hex ids) of all refs, by name; raises `DamagedRefError`."""
        commits = self._read_packed()
        for folder, _, files in os.walk(self._path / "refs"):
            place = Path(folder).relative_to(self._path)
            for file in files:
                if file.endswith(_LOCK):
                    continue
                with suppress(FileNotFoundError), open(f"{folder}/{file}", "rb") as ref:
                    commits[f"{place}/{file}"] = _parse_commit(f"{place}/{file}", ref.read())
        return dict(sorted(commits.items()))

    def get(self, name: str) -> str | None:
        """Return the commit (hex id) of a ref, None without the ref; raises `DamagedRefError`."""
        try:
            content = (self._path / name).read_bytes()
        except FileNotFoundError:
            return self._read_packed().get(name)
        return _parse_commit(name, content)

    def set(self, name: str, commit: str) -> None:
        """Set a ref to a commit (hex id), durably; raises `LockedError` while git changes it."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, lambda: f"{commit}\n")

    def delete(self, name: str) -> None:
        """Delete a ref, if it exists, durably; raises `LockedError` or `DamagedRefError`."""
        if name in self._read_packed():  # first, or the packed one would come back
            _replace(self._packed, lambda: self._packed_without(name))
        path = self._path / name
        if path.is_file():
            path.unlink()
            sync_folder(path.parent)

    def remove_unfinished(self) -> None:
        """Delete the locks that a killed run left, except git's.

        The caller ensures that no other run of huai writes refs meanwhile.
        """
        for own in ((self._path / "refs").rglob(f"*{_OWN_LOCK}"), self._path.glob(f"*{_OWN_LOCK}")):
            for path in own:
                _unlock(path.with_name(path.name.removesuffix(_OWN_LOCK)))

    def _packed_without(self, name: str) -> str:
        """Return the text of packed-refs without the ref `name`, comments and commits of tags."""
        packed = sorted(self._read_packed().items())
        return "".join(f"{commit} {each}\n" for each, commit in packed if each != name)

    def _read_packed(self) -> dict[str, str]:
        """Read packed-refs: hex ids by name; `DamagedRefError` if a line is malformed."""
        if not self._packed.exists():
            return {}
        commits = {}
        for line in self._packed.read_bytes().decode("utf-8", "replace").splitlines():
            match = _PACKED.fullmatch(line)
            if match:
                commits[match[2]] = match[1]
            elif not line.startswith(("#", "^")):  # a comment, the commit of an annotated tag
                raise DamagedRefError(self._packed.name, "has a line that is not a ref")
        return commits


def _replace(path: Path, content: Callable[[], str]) -> None:
    """Replace a file durably by the result of `content`, which is called under git's lock.

    Raises `LockedError` if git holds the lock for 30 s.
    """
    own, lock = path.with_name(path.name + _OWN_LOCK), path.with_name(path.name + _LOCK)
    _unlock(path)
    with open(own, "x", encoding="ascii") as file:
        try:
            if not take_within(lambda: _link(own, lock), _WAIT_SECONDS):
                raise LockedError(
                    f"{lock}: git is changing this ref",
                    hint="run again when it has ended; remove the file if no git runs there",
                )
            file.write(content())
            file.flush()
            os.fsync(file.fileno())
            lock.replace(path)
        finally:
            _unlock(path)
    sync_folder(path.parent)


def _link(own: Path, lock: Path) -> bool | None:
    """Link `own` as `lock`, and return True; None if `lock` exists."""
    with suppress(FileExistsError):
        lock.hardlink_to(own)
        return True
    return None


def _unlock(path: Path) -> None:
    """Remove our lock of a ref, if there is one, with both of its names."""
    own, lock = path.with_name(path.name + _OWN_LOCK), path.with_name(path.name + _LOCK)
    with suppress(FileNotFoundError):
        if lock.samefile(own):
            lock.unlink()
    own.unlink(missing_ok=True)


def _parse_commit(name: str, content: bytes) -> str:
    """Return the hex id in a ref; `DamagedRefError` if it is malformed."""
    commit = content.decode("ascii", "replace").removesuffix("\n")
    if not _COMMIT.fullmatch(commit):
        raise DamagedRefError(name, "is not the name of a commit")
    return commit
