"""Changes in a tree between the scan of a commit and the reading of its files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from huai_native._native import BlockIndex
from huai_server.store.block_indices import BlockIndices
from tests.support.committing import Upstream

INDEXED = 1 << 17
"""Bytes of a file with a block index: such files are read one after the other."""


def indexed_upstream(folder: Path, *paths: str) -> Upstream:
    """A tree whose files all have block indices; `0` is the first that is read."""
    upstream = Upstream(folder)
    upstream.configure(block_index=1 << 16)
    for number, path in enumerate(("0", *paths)):
        upstream.write(path, f"{number}" * INDEXED)
    return upstream


def when_read(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Call `change` after the scan, when the first indexed file was read and no other one."""
    write, changes = BlockIndices.write, [change]

    def write_and_change(self: BlockIndices, index: BlockIndex) -> None:
        write(self, index)
        if changes:
            changes.pop()()

    monkeypatch.setattr(BlockIndices, "write", write_and_change)
