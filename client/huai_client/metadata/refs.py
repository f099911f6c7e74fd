"""The refs of the metadata repository: names of commits, each a file (gitrepository-layout(5)).

Written as every git reads them; those that somebody's git has packed are read as well.
Rule: a ref is replaced in one durable step, so that a power cut leaves the old commit or the new.
"""

import re
from pathlib import Path

from huai_schema.program.durable import replace_file, sync_folder

_LOCK = ".lock"
_COMMIT = re.compile("[0-9a-f]{40}")
_PACKED = re.compile(r"([0-9a-f]{40}) (refs/[^ ]+)")


class DamagedRefError(ValueError):
    """A ref names no commit; its arguments are the ref and the reason."""


class Refs:
    """Of the bare repository at `path`.  Each method may raise an `OSError`."""

    def __init__(self, path: Path) -> None:
        """Reads nothing yet."""
        self._path = path
        self._packed = path / "packed-refs"

    def all(self) -> dict[str, str]:
        """All refs and the commits (hex ids) they name, by name; `DamagedRefError`."""
        found = self._read_packed()
        for path in (self._path / "refs").rglob("*"):
            if path.suffix != _LOCK and path.is_file():
                name = str(path.relative_to(self._path))
                commit = path.read_bytes().decode("ascii", "replace").removesuffix("\n")
                if not _COMMIT.fullmatch(commit):
                    raise DamagedRefError(name, "names no commit")
                found[name] = commit
        return dict(sorted(found.items()))

    def set(self, name: str, commit: str) -> None:
        """Let a ref name a commit from now on, whatever it was."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{commit}\n".encode(), path.with_name(path.name + _LOCK))

    def delete(self, name: str) -> None:
        """Drop a ref, if there is one of that name."""
        packed = self._read_packed()
        if packed.pop(name, None) is not None:  # first: else the packed one would come back
            text = "".join(f"{commit} {each}\n" for each, commit in sorted(packed.items()))
            lock = self._packed.with_name(self._packed.name + _LOCK)
            replace_file(self._packed, text.encode(), lock)
        path = self._path / name
        if path.is_file():
            path.unlink()
            sync_folder(path.parent)

    def _read_packed(self) -> dict[str, str]:
        if not self._packed.exists():
            return {}
        found = {}
        for line in self._packed.read_bytes().decode("utf-8", "replace").splitlines():
            match = _PACKED.fullmatch(line)
            if match:
                found[match[2]] = match[1]
            elif not line.startswith(("#", "^")):  # a comment, the commit of an annotated tag
                raise DamagedRefError(self._packed.name, "has a line that is no ref")
        return found
