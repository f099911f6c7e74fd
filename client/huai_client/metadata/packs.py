"""The files of a repository: what a killed run left goes, and packs are kept few.

Knows files, not what is in them.  Rule: the new pack is complete before the first old one goes.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from huai_schema.program.durable import sync_folder


def exchange_packs(repository: Path, limit: int, write: Callable[[Path], None]) -> None:
    """If there are more than `limit` packs, let `write` make one in a folder, and drop the others.

    May be interrupted anywhere; `write` also sees to it that a commit without its parents is known
    as such before they go.  Raises what `write` raises, or an `OSError`; then nothing has changed.
    """
    packs = repository / "objects" / "pack"
    old = sorted(packs.glob("pack-*.pack"))
    if len(old) <= limit:
        return
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
    for pack in old:
        if pack.stem not in names:
            pack.with_suffix(".idx").unlink(missing_ok=True)  # without it, it is no pack
            pack.unlink()


def drop_unfinished(repository: Path) -> None:
    """What a run that was killed left behind: half packs, and locks of refs."""
    for part in list_unfinished(repository):
        with suppress(OSError):
            part.unlink()


def list_unfinished(repository: Path) -> list[Path]:
    """The same, only to look at it."""
    half = (repository / "objects" / "pack").glob("*_git2_*")
    locks = (repository / "refs").rglob("*.lock")
    return [*half, *locks, *repository.glob("*.lock")]
