"""Removes unfinished files from the folder of a repository's packs.

Both programs write packs there, each under the lock of its module.  Rule: a file gets a name that
ends in `.idx` only when it and its pack are complete, because git opens every such file.
"""

import os
from pathlib import Path

TEMPORARY = "tmp_huai_"
"""Prefix of unfinished files; git prunes files whose names begin with `tmp_` as well."""
PACK, INDEX = ".pack", ".idx"
REPLACED = ".replaced"
"""What an index is called whose pack nobody looks for any more, and somebody may still read."""


def remove_unfinished(folder: Path) -> None:
    """Remove the files that a killed run left; the caller holds the module's lock."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    for name in names:
        stem, suffix = os.path.splitext(name)
        # Killed between its two renames: a pack without an index, which git never looks at.
        is_half = suffix == PACK and names.isdisjoint((stem + INDEX, stem + REPLACED))
        if name.startswith(TEMPORARY) or (is_half and name.startswith("pack-")):
            (folder / name).unlink(missing_ok=True)


def remove_pack(folder: Path, name: bytes) -> None:
    """Remove a complete pack that nothing refers to, the index first: git finds it by that."""
    for path in sorted(
        folder.glob(f"*{os.fsdecode(name)}*"), key=lambda path: path.suffix != ".idx"
    ):
        path.unlink()
