"""Packs that others took the place of: kept for a while, for whoever reads them.

The index gets another name first, so nobody finds the pack any more: a commit cannot rely on it,
and a fetch that begins looks elsewhere.  A fetch that runs may have read the index and not yet
opened the pack: it finds it for an hour.  Who has opened it reads on anyway.

Rule: what replaces a pack is durable, and was read back, before `retire` is called.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from huai_program.durable import sync_folder
from huai_program.packs import INDEX, REPLACED
from huai_server.store.pack_files import PackFile

KEPT = 3600
"""Seconds that a replaced pack stays."""
_LISTS = "multi-pack-index"
"""What somebody's own `git repack` may have left: it names packs."""


def retire(folder: Path, packs: Sequence[PackFile], now: float) -> None:
    """Let nobody find `packs` any more; the caller holds the module's lock.

    `now` in seconds since the epoch.
    """
    if not packs:
        return
    (folder / _LISTS).unlink(missing_ok=True)
    for pack in packs:
        os.utime(
            pack.index_path, (now, now)
        )  # before: a pack whose time is not known would go at once
        pack.index_path.rename(pack.path.with_suffix(REPLACED))
    sync_folder(folder)


def replaced_packs(folder: Path) -> Iterator[Path]:
    """The packs that were replaced, by what their indices are called now."""
    yield from folder.glob(f"pack-*{REPLACED}")


def remove_replaced(folder: Path, now: float) -> int:
    """Remove those that were replaced long enough ago; the caller holds the module's lock.

    Returns how many.
    """
    removed = 0
    for path in replaced_packs(folder):
        if path.stat().st_mtime + KEPT > now:
            continue
        # Somebody may have committed what it held again: its name says what is in it.
        if not path.with_suffix(INDEX).exists():
            for each in folder.glob(f"{path.stem}.*"):
                if each != path:
                    each.unlink(missing_ok=True)
        path.unlink(missing_ok=True)  # last: until then it is one that was replaced
        removed += 1
    return removed
