"""The packs of a repository: what a killed run left is removed, and the number of packs kept low.

Does not read packs.  Rule: the new pack is complete before the first old one is removed.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from huai_program.durable import sync_folder
from huai_program.packs import remove_packs

_EXCESS = 2
_EXCESS_BYTES = 64 << 20
"""Bytes in small packs above which a repack is worth its cost: it rewrites everything."""


def needs_repack(repository: Path, limit: int) -> bool:
    """Return True if there are more than `limit` packs, or the small ones take too many bytes.

    A fetch of a few KiB is kept with all bases of its deltas: often a hundred times that.
    """
    sizes = pack_sizes(repository)
    largest = max(sizes, default=0)
    return len(sizes) > limit or sum(sizes) - largest > max(_EXCESS_BYTES, _EXCESS * largest)


def exchange_packs(repository: Path, write: Callable[[Path], None]) -> None:
    """Replace all packs by the one that `write` makes in the folder that it is called with.

    May be interrupted anywhere; `write` also lists commits without parents as shallow before the
    old packs are removed.  Raises what `write` raises, or an `OSError`; then nothing has changed.
    """
    old = list_packs(repository)
    packs = repository / "objects" / "pack"
    fresh = repository / "fresh-pack"
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        write(fresh)
        names = {name.stem for name in fresh.iterdir()}
        for part in sorted(fresh.iterdir(), key=lambda part: part.suffix == ".idx"):
            part.rename(packs / part.name)
        sync_folder(packs)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    remove_packs(pack for pack in old if pack.stem not in names)


def pack_sizes(repository: Path) -> list[int]:
    """Return the size of each pack in bytes."""
    return [pack.stat().st_size for pack in list_packs(repository)]


def list_packs(repository: Path) -> list[Path]:
    """Return the packs, by name."""
    return sorted((repository / "objects" / "pack").glob("pack-*.pack"))


def drop_unfinished(repository: Path) -> None:
    """Remove incomplete packs and locks of refs that a killed run left; errors are ignored."""
    folder = repository / "objects" / "pack"
    half = (*folder.glob("tmp_*"), *folder.glob("*.keep"))
    locks = (*(repository / "refs").rglob("*.lock"), *repository.glob("*.lock"))
    for part in half + locks:
        with suppress(OSError):
            part.unlink()
