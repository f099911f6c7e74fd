"""Removes unfinished files from the folder of a repository's packs.

Both programs write packs there, under the lock of the module.  Rule: a file is renamed to `*.idx`
only when it and its pack are complete, because git opens every such file.
"""

import os
from pathlib import Path

TEMPORARY = "tmp_huai_"
"""The prefix of unfinished files; git, too, prunes files that begin with `tmp_`."""
PACK, INDEX = ".pack", ".idx"
REPLACED = ".replaced"
"""The suffix of the index of a replaced pack, which running readers may still use."""


def remove_unfinished(folder: Path) -> None:
    """Remove the files that a killed run left; the caller holds the module's lock."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    for name in names:
        stem, suffix = os.path.splitext(name)
        # A run killed between its two renames left a pack without an index, which git ignores.
        is_half = suffix == PACK and names.isdisjoint((stem + INDEX, stem + REPLACED))
        if name.startswith(TEMPORARY) or (is_half and name.startswith("pack-")):
            (folder / name).unlink(missing_ok=True)


def remove_pack(folder: Path, name: bytes) -> None:
    """Remove a complete, unused pack, the index first, by which git finds it."""
    for path in sorted(
        folder.glob(f"*{os.fsdecode(name)}*"), key=lambda path: path.suffix != ".idx"
    ):
        path.unlink()
