"""Copies of open files."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from huai_client.transfer.copy import clone, copy

BLOCK = 4 << 20


class Pair:
    """A source and an empty target."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "source"
        self.path.touch()
        self.source = os.open(self.path, os.O_RDONLY)
        self.target_path = folder / "target"
        self.target = os.open(self.target_path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def close(self) -> None:
        os.close(self.source)
        os.close(self.target)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = Pair(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_all_of_it_and_its_digest(pair: Pair, size: int) -> None:
    content = os.urandom(size)
    pair.path.write_bytes(content)
    assert copy(pair.source, pair.target) == blake3(content).digest()
    assert pair.target_path.read_bytes() == content


@pytest.mark.parametrize("data", [(0,), (5 * BLOCK,), (9 * BLOCK - 3,), (2 * BLOCK, 7 * BLOCK), ()])
def test_holes_stay_holes(pair: Pair, data: tuple[int, ...]) -> None:
    with pair.path.open("r+b") as sparse:
        for place in data:
            sparse.seek(place)
            sparse.write(b"data")
        sparse.truncate(10 * BLOCK)
    content = pair.path.read_bytes()
    assert copy(pair.source, pair.target) == blake3(content).digest()
    assert pair.target_path.read_bytes() == content
    assert pair.target_path.stat().st_blocks * 512 <= (len(data) + 1) * BLOCK


def test_it_does_not_matter_where_the_handle_stands(pair: Pair) -> None:
    pair.path.write_bytes(b"content")
    os.read(pair.source, 3)
    copy(pair.source, pair.target)
    assert pair.target_path.read_bytes() == b"content"


def test_a_clone_is_the_same_or_nothing(pair: Pair) -> None:
    pair.path.write_bytes(b"content" * 10_000)
    done = clone(pair.source, pair.target)
    assert pair.target_path.read_bytes() == (b"content" * 10_000 if done else b"")


def test_no_clone_from_another_file_system(pair: Pair) -> None:
    other = os.memfd_create("other")
    try:
        assert not clone(other, pair.target)
    finally:
        os.close(other)
