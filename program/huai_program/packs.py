"""Writes packs into the folder of a repository, and removes unfinished ones.

Both programs write there, under the lock of the module.  Rule: a file is renamed to `*.idx`
only when it and its pack are complete, because git opens every such file.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_native._native import PackWriter

TEMPORARY = "tmp_huai_"
"""The prefix of unfinished files; git, too, prunes files that begin with `tmp_`."""
PACK, INDEX = ".pack", ".idx"
REPLACED = ".replaced"
"""The suffix of the index of a replaced pack, which running readers may still use."""


@contextmanager
def opened_writer(folder: Path, base: Path | None = None) -> Iterator[PackWriter]:
    """Yield the writer of a pack; at the end of the block it is removed unless it was finished.

    Objects in the packs of `base`, by default `folder`, are left out.
    """
    name = TEMPORARY + os.urandom(8).hex()
    threads = os.cpu_count() or 1
    places = os.fsencode(folder), os.fsencode(name)
    writer = PackWriter(*places, threads=threads, known=os.fsencode(base or folder))
    try:
        yield writer
    finally:
        with suppress(OSError):  # the next run removes it
            writer.abort()


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files, and packs without an index; the caller holds the module's lock."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    for name in names:
        stem, suffix = os.path.splitext(name)
        # A run killed between its two renames left a pack without an index, which git ignores.
        is_half = suffix == PACK and names.isdisjoint((stem + INDEX, stem + REPLACED))
        if name.startswith(TEMPORARY) or (is_half and name.startswith("pack-")):
            (folder / name).unlink(missing_ok=True)


def remove_packs(packs: Iterable[Path]) -> None:
    """Remove complete, unused packs (`pack-*.pack`), each index first: git finds packs by it."""
    for pack in packs:
        pack.with_suffix(INDEX).unlink(missing_ok=True)
        pack.unlink(missing_ok=True)
