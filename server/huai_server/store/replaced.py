"""Replaced packs: kept for a while, for running fetches.

The index is renamed first, so that no process finds the pack any more: a commit cannot rely on it,
and a new fetch does not use it.  A running fetch may have read the index and not yet opened the
pack: it can for an hour.  A process that has opened it can read on in any case.

Rule: the replacement of a pack is durable, and was read back, before `retire` is called.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from huai_program.durable import sync_folder
from huai_program.packs import INDEX, REPLACED
from huai_server.store.pack_files import PackFile

KEPT = 3600
"""Seconds that a replaced pack stays."""
_MULTI_PACK_INDEX = "multi-pack-index"
"""A file of an administrator's `git repack`, which names packs."""


def retire(folder: Path, packs: Sequence[PackFile], now: float) -> None:
    """Rename the indices of `packs` in `folder`, so that only running readers use the packs.

    Deletes an administrator's multi-pack-index, unless `packs` is empty.  The caller holds the
    module's lock.  `now` is in seconds since the epoch.
    """
    if not packs:
        return
    (folder / _MULTI_PACK_INDEX).unlink(missing_ok=True)
    for pack in packs:
        # First: `remove_replaced` would take the old time for that of the replacement.
        os.utime(pack.index_path, (now, now))
        pack.index_path.rename(pack.path.with_suffix(REPLACED))
    sync_folder(folder)


def remove_replaced(folder: Path, now: float) -> None:
    """Delete packs in `folder` replaced at least `KEPT` seconds ago; keep those made again since.

    The caller holds the module's lock.  `now` is in seconds since the epoch.
    """
    for path in folder.glob(f"pack-*{REPLACED}"):
        if path.stat().st_mtime + KEPT > now:
            continue
        # A commit may have made the same pack again: its name is a hash of its objects.
        if not path.with_suffix(INDEX).exists():
            for file in folder.glob(f"{path.stem}.*"):
                if file != path:
                    file.unlink(missing_ok=True)
        path.unlink(missing_ok=True)  # last: until then the pack counts as replaced
