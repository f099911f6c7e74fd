"""The engine's block indices, and the files that it puts together by them."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

import pytest
from blake3 import blake3

from huai_native._native import BlockIndex
from tests.support.schema.block_index import block_index

BLOCK = 65_536
Ranges = list[tuple[int, int]]


def index_of(content: bytes) -> BlockIndex:
    with TemporaryFile() as file:
        file.write(content)
        file.flush()
        index = BlockIndex.of_file(file.fileno(), BLOCK, 1)
    assert index is not None
    return index


def on(_done: int) -> bool:
    return True


@pytest.mark.parametrize("threads", [1, 3])
def test_of_a_file(tmp_path: Path, threads: int) -> None:
    content = os.urandom(3 * BLOCK + 5)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        index = BlockIndex.of_file(file.fileno(), BLOCK, threads)
        wide = BlockIndex.of_file(file.fileno(), 2 * BLOCK, threads)
    assert index is not None
    assert index.encode() == block_index(content)
    assert (index.size, index.digest()) == (len(content), blake3(content).digest())
    assert wide is not None
    assert (wide.block_size, wide.digest()) == (2 * BLOCK, index.digest())
    assert index.places(wide).unknown > 0
    os.truncate(tmp_path / "file", 1)
    with (tmp_path / "file").open("rb") as file:
        assert BlockIndex.of_file(file.fileno(), BLOCK, threads) is None


class Bench:
    """Files by their content, and what is put together of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def assemble(
        self,
        target: bytes,
        old: bytes | None = None,
        partial: bytes | None = None,
        hear: Callable[[int], bool] = on,
        *,
        claimed: bytes | None = None,
    ) -> tuple[Ranges, tuple[int, int, int], bytes]:
        """Return the missing ranges, the counts by source, and the file.

        `claimed`: the content that the index of `old` is of.
        """
        names = {"old": old, "partial": partial, "new": b""}
        handles = {}
        for name, content in names.items():
            if content is not None:
                (self.folder / name).write_bytes(content)
                handles[name] = os.open(self.folder / name, os.O_RDWR)
        try:
            before = None
            if old is not None:
                before = index_of(old if claimed is None else claimed)
            sources = handles.get("old"), handles.get("partial"), True
            index = index_of(target)
            result = index.places(before).assemble(handles["new"], sources, 2, hear)
            everything = [(0, len(target))]
            assert index.wrong_ranges(handles["new"], everything, 2) == result[0]
        finally:
            for handle in handles.values():
                os.close(handle)
        return result[0], result[1], (self.folder / "new").read_bytes()


@pytest.fixture(name="bench")
def bench_in(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


CONTENT = Random(1).randbytes(6 * BLOCK + 10)


def test_each_block_from_where_it_is(bench: Bench) -> None:
    a, b, c = (CONTENT[at * BLOCK : (at + 1) * BLOCK] for at in range(3))
    new = Random(2).randbytes(BLOCK)
    target = a + c + bytes(BLOCK) + new + CONTENT[4 * BLOCK :]
    missing, counts, content = bench.assemble(target, CONTENT)
    assert missing == [(3 * BLOCK, 4 * BLOCK)]
    assert counts == (3 * BLOCK + 10, BLOCK, BLOCK)
    assert content == target[: 3 * BLOCK] + content[3 * BLOCK : 4 * BLOCK] + target[4 * BLOCK :]
    missing, counts, content = bench.assemble(target, CONTENT, bytes(3 * BLOCK) + new + b)
    assert (missing, content) == ([], target)
    assert counts == (3 * BLOCK + 10, 2 * BLOCK, BLOCK)


def test_nothing_is_here(bench: Bench) -> None:
    missing, counts, content = bench.assemble(CONTENT)
    assert (missing, counts, len(content)) == ([(0, len(CONTENT))], (0, 0, 0), len(CONTENT))


def test_what_moved_is_proved(bench: Bench) -> None:
    """A claim of an index about another place is checked; about the same place it is trusted."""
    swapped = CONTENT[BLOCK : 2 * BLOCK] + CONTENT[:BLOCK] + CONTENT[2 * BLOCK :]
    damaged = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    missing, counts, _ = bench.assemble(swapped, damaged, claimed=CONTENT)
    assert missing == [(BLOCK, 2 * BLOCK)]
    assert counts == (4 * BLOCK + 10, BLOCK, 0)


def test_a_shorter_old_file_than_was_said(bench: Bench) -> None:
    target = CONTENT[BLOCK:] + CONTENT[:BLOCK]
    missing, _, _ = bench.assemble(target, CONTENT[: 2 * BLOCK], claimed=CONTENT)
    assert missing


def test_it_can_be_ended(tmp_path: Path) -> None:
    size = 2 << 30
    for name in ("zeros", "new"):
        (tmp_path / name).touch()
    os.truncate(tmp_path / "zeros", size)
    with (tmp_path / "zeros").open("rb") as zeros, (tmp_path / "new").open("r+b") as new:
        index = BlockIndex.of_file(zeros.fileno(), BLOCK, 2)
        assert index is not None
        with pytest.raises(OSError, match="cancel"):
            index.places(None).assemble(new.fileno(), (None, None, True), 1, lambda _: False)
