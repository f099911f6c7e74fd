"""The files of a repository: what a killed run left goes, and packs are kept few.

Knows files, not what is in them.  Rule: the new pack is complete before the first old one goes.
"""

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from huai_program.durable import sync_folder

_BESIDE = 2
_BESIDE_BYTES = 64 << 20
"""What packs anew is worth it: it reads and writes everything."""


def exceeds(repository: Path, limit: int) -> bool:
    """Whether there are more than `limit` packs, or more in them than one of them would have.

    A fetch of a few KiB is kept with all that its deltas are made from: often a hundred times that.
    """
    sizes = pack_sizes(repository)
    largest = max(sizes, default=0)
    return len(sizes) > limit or sum(sizes) - largest > max(_BESIDE_BYTES, _BESIDE * largest)


def exchange_packs(repository: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make one pack in a folder, and drop all others.

    May be interrupted anywhere; `write` also sees to it that a commit without its parents is known
    as such before they go.  Raises what `write` raises, or an `OSError`; then nothing has changed.
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


def remove_packs(packs: Iterable[Path]) -> None:
    """Remove these packs and their indices."""
    for pack in packs:
        pack.with_suffix(".idx").unlink(missing_ok=True)  # without it, it is not a pack
        pack.unlink(missing_ok=True)


def pack_sizes(repository: Path) -> list[int]:
    """Return the bytes of each pack."""
    return [pack.stat().st_size for pack in list_packs(repository)]


def list_packs(repository: Path) -> list[Path]:
    """Return the packs, by name."""
    return sorted((repository / "objects" / "pack").glob("pack-*.pack"))


def drop_unfinished(repository: Path) -> None:
    """What a run that was killed left behind: half packs, and locks of refs."""
    for part in list_unfinished(repository):
        with suppress(OSError):
            part.unlink()


def list_unfinished(repository: Path) -> list[Path]:
    """The same, only to look at it."""
    folder = repository / "objects" / "pack"
    half = chain(folder.glob("tmp_*"), folder.glob("*.keep"))
    locks = (repository / "refs").rglob("*.lock")
    return [*half, *locks, *repository.glob("*.lock")]
