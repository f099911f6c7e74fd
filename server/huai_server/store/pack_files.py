"""The packs of a repository as files: the number of objects in each, and their ids.

Reads the parts of an index (gitformat-pack(5), version 2) that maintenance needs; the engine reads
objects.  A pack with a `.keep` file belongs to an administrator.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_program.packs import INDEX, PACK
from huai_schema.errors import ExitCode, HuaiError

_MAGIC = b"\xfftOc\0\0\0\2"
_COUNT = struct.Struct(f">8s{255 * 4}xI")
"""The head of an index: its kind, and the last number of a table, which is the total."""
_ID = struct.Struct("20s")


class PackIndexError(HuaiError):
    """An index that is damaged, or in a format of neither huai nor any present git."""

    exit_code = ExitCode.UNSOUND


class PackFile(NamedTuple):
    """A pack with its number of objects."""

    path: Path
    objects: int

    @property
    def index_path(self) -> Path:
        """Return the path of the index, by which git finds the pack."""
        return self.path.with_suffix(INDEX)

    def ids(self) -> Iterator[bytes]:
        """Yield the binary ids of its objects, ascending."""
        with self.index_path.open("rb") as file:
            file.seek(_COUNT.size)
            for (oid,) in _ID.iter_unpack(file.read(self.objects * _ID.size)):
                yield oid


def read_pack(path: Path) -> PackFile:
    """Read the number of objects of the pack at `path` from its index.

    Raises `PackIndexError` if the index is malformed, `OSError` if it is missing.
    """
    index = path.with_suffix(INDEX)
    with index.open("rb") as file:
        head = file.read(_COUNT.size)
    size = index.stat().st_size
    if len(head) == _COUNT.size:
        kind, count = _COUNT.unpack(head)
        if kind == _MAGIC and _COUNT.size + count * _ID.size < size:
            return PackFile(path, count)
    raise PackIndexError(
        f"{index}: not the index of a pack", hint="`huai-server check` names what is damaged"
    )


def list_packs(folder: Path, *, keep: bool = False) -> list[PackFile]:
    """Return the packs in `folder` without a `.keep` file, or with `keep` only those with one.

    The pack with the fewest objects comes first.  Raises `PackIndexError` for a malformed index.
    """
    indices = folder.glob(f"pack-*{INDEX}")
    chosen = (path for path in indices if path.with_suffix(".keep").exists() == keep)
    packs = (read_pack(path.with_suffix(PACK)) for path in chosen)
    return sorted(packs, key=lambda pack: (pack.objects, pack.path))
