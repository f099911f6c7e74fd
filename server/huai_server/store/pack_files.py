"""The packs of a repository as files: how many objects each has, and which ones.

Reads of an index (gitformat-pack(5), version 2) what maintenance decides by; objects are read by
the engine.  A pack with a `.keep` file beside it is somebody's own.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_program.packs import INDEX, PACK
from huai_schema.errors import ExitCode, HuaiError

_MAGIC = b"\xfftOc\0\0\0\2"
_COUNT = struct.Struct(f">8s{255 * 4}xI")
"""What an index begins with: its kind, and the last number of a table, which counts all."""
_ID = struct.Struct("20s")


class PackIndexError(HuaiError):
    """An index that is damaged, or of a kind that neither huai nor any git of today writes."""

    exit_code = ExitCode.UNSOUND


class PackFile(NamedTuple):
    """A pack."""

    path: Path
    """Of the pack itself."""
    objects: int

    @property
    def index_path(self) -> Path:
        """The file that makes it one for git."""
        return self.path.with_suffix(INDEX)

    def ids(self) -> Iterator[bytes]:
        """The objects in it, in the order of their ids."""
        with self.index_path.open("rb") as file:
            file.seek(_COUNT.size)
            for (oid,) in _ID.iter_unpack(file.read(self.objects * _ID.size)):
                yield oid


def read_pack(path: Path) -> PackFile:
    """The pack at `path`; `PackIndexError` if its index is none."""
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


def list_packs(folder: Path) -> list[PackFile]:
    """Those in `folder` that maintenance may touch, the smallest first."""
    return _list(folder, kept=False)


def kept_packs(folder: Path) -> list[PackFile]:
    """Those in `folder` that it may not."""
    return _list(folder, kept=True)


def _list(folder: Path, *, kept: bool) -> list[PackFile]:
    indices = folder.glob(f"pack-*{INDEX}")
    wanted = (path for path in indices if path.with_suffix(".keep").exists() == kept)
    found = (read_pack(path.with_suffix(PACK)) for path in wanted)
    return sorted(found, key=lambda pack: (pack.objects, pack.path))
