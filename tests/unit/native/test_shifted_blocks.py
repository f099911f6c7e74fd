"""Blocks of a new file are found in the older one by any number of bytes further on."""

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from huai_native._native import BlockIndex

BLOCK = 65_536
OLD = Random(1).randbytes(40 * BLOCK + 1234)


def index_of(path: Path) -> BlockIndex:
    with path.open("rb") as file:
        index = BlockIndex.of_file(file.fileno(), BLOCK, 2)
    assert index is not None
    return index


def missing(folder: Path, old: bytes, new: bytes, *, claimed: bytes | None = None) -> int:
    """Return the bytes of `new` that were not found in `old`; all others are right.

    `claimed`: the content that the index of the old file is of.
    """
    old_path, new_path, result = folder / "old", folder / "new", folder / "made"
    old_path.write_bytes(old if claimed is None else claimed)
    new_path.write_bytes(new)
    index, older = index_of(new_path), index_of(old_path)
    old_path.write_bytes(old)
    with old_path.open("rb") as source, result.open("w+b") as target:
        sources = older, source.fileno(), None, True
        ranges, counts, _ = index.assemble(target.fileno(), sources, 2, lambda _: True)
    content = bytearray(result.read_bytes())
    for begin, end in ranges:
        content[begin:end] = new[begin:end]
    assert bytes(content) == new
    lacking = sum(end - begin for begin, end in ranges)
    assert lacking + sum(counts) == len(new)
    return lacking


@given(st.integers(0, 20 * BLOCK), st.integers(0, 3 * BLOCK), st.integers(0, 3 * BLOCK))
@settings(max_examples=25, deadline=None)
def test_any_shift(place: int, removed: int, added: int) -> None:
    """The blocks that hold what was put in, and the one that two parts of the old file share."""
    new = OLD[:place] + Random(2).randbytes(added) + OLD[place + removed :]
    with TemporaryDirectory() as folder:
        assert missing(Path(folder), OLD, new) <= added // BLOCK * BLOCK + 2 * BLOCK


def test_several_shifts(tmp_path: Path) -> None:
    parts = [OLD[at : at + 10 * BLOCK] for at in range(0, 40 * BLOCK, 10 * BLOCK)]
    new = b"".join(bytes([number]) * 7 + part for number, part in enumerate(reversed(parts)))
    assert missing(tmp_path, OLD, new) <= 5 * BLOCK


@pytest.mark.parametrize("size", [0, 1, BLOCK, 30 * BLOCK])
def test_an_old_file_that_is_not_what_was_said(tmp_path: Path, size: int) -> None:
    other = os.urandom(size)
    assert missing(tmp_path, other, b"x" + OLD, claimed=OLD) == len(OLD) + 1
