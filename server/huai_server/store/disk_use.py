"""The disk space that the metadata of one module take, by purpose.

Reads sizes only, and takes no lock: files that appear or vanish meanwhile may be counted or not.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from huai_program.packs import INDEX, PACK, REPLACED, TEMPORARY
from huai_schema.codec.static_files import FOLDER
from huai_server.state.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repack import Repack


class Use(NamedTuple):
    """Files of one kind."""

    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "Use":
        """Return the number and total size of the existing files among `paths`."""
        sizes = [size for path in paths if (size := _size(path)) is not None]
        return cls(len(sizes), sum(sizes))


class DiskUse(NamedTuple):
    """The contents of a module's folder."""

    packs: Use
    """Packs; the number of files leaves out their indices."""
    loose: Use
    replaced: Use
    """Replaced packs, removed once no fetch can be reading them."""
    static: Use
    blocks: Use
    unfinished: Use
    """Remains of killed runs, and files of running ones."""
    caches: Use
    """Caches that make the next commit quick."""

    @property
    def bytes(self) -> int:
        """Return the total size."""
        return sum(use.bytes for use in self)


def disk_use(places: ModulePlaces) -> DiskUse:
    """Measure the module's files; those that are missing count as 0."""
    repository = places.repository
    folder = repository / "objects" / "pack"
    packs = Use.of(path for path in folder.glob(f"*{PACK}") if path.with_suffix(INDEX).exists())
    indices = Use.of(folder.glob(f"*{INDEX}"))
    replaced = Use.of(path.with_suffix(PACK) for path in folder.glob(f"*{REPLACED}"))
    return DiskUse(
        packs=Use(packs.files, packs.bytes + indices.bytes),
        loose=Use.of(Repack(repository).loose()),
        replaced=replaced,
        static=Use.of(static_files(repository)),
        blocks=Use.of(BlockIndices(repository).stored().values()),
        unfinished=Use.of(unfinished(repository)),
        caches=Use.of([places.digests, places.mounts]),
    )


def static_files(repository: Path) -> Iterable[Path]:
    """Return the complete static files of the module."""
    files = (path for path in (repository / FOLDER).rglob("*") if path.is_file())
    return (path for path in files if not path.name.startswith(TEMPORARY))


def unfinished(repository: Path) -> Iterable[Path]:
    """Yield the remains of killed runs, and files that a run is writing."""
    yield from repository.glob(f"*/{TEMPORARY}*")
    yield from repository.glob(f"objects/pack/{TEMPORARY}*")
    yield from repository.glob("objects/tmp_object_*")
    yield from Repack(repository).unfinished()


def _size(path: Path) -> int | None:
    """Return a file's size; None if it is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
