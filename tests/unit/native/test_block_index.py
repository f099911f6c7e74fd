"""The engine's block indices, and the files that it puts together by them."""

import os
from pathlib import Path

import pytest
from blake3 import blake3

from huai_native._native import BlockIndex
from tests.support.schema.block_index import block_index

BLOCK = 65_536


@pytest.mark.parametrize("threads", [1, 3])
def test_of_a_file(tmp_path: Path, threads: int) -> None:
    content = os.urandom(3 * BLOCK + 5)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        index = BlockIndex.of_file(file.fileno(), BLOCK, threads)
        wide = BlockIndex.of_file(file.fileno(), 2 * BLOCK, threads)
    assert index is not None
    assert index.encode() == block_index(content)
    assert index.digest() == blake3(content).digest()
    assert wide is not None
    assert (wide.block_size, wide.digest()) == (2 * BLOCK, index.digest())
    assert index.unknown_bytes(wide) > 0
    os.truncate(tmp_path / "file", 1)
    with (tmp_path / "file").open("rb") as file:
        assert BlockIndex.of_file(file.fileno(), BLOCK, threads) is None


def test_it_can_be_ended(tmp_path: Path) -> None:
    size = 2 << 30
    for name in ("zeros", "new"):
        (tmp_path / name).touch()
    os.truncate(tmp_path / "zeros", size)
    with (tmp_path / "zeros").open("rb") as zeros, (tmp_path / "new").open("r+b") as new:
        index = BlockIndex.of_file(zeros.fileno(), BLOCK, 2)
        assert index is not None
        with pytest.raises(OSError, match="cancel"):
            index.assemble(new.fileno(), (None, None, None, True), 1, lambda _: False)
