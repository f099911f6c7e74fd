"""Files are read with low priority, and not to the end if they are not needed."""

import os
from pathlib import Path

import pytest

from huai_client.tree.hashing import Hashing


def test_files_are_read_by_threads_that_give_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    with Hashing[int]() as hashing:
        handle = os.open(tmp_path / "file", os.O_RDONLY)
        assert [*hashing.add(1, handle), *hashing.rest()][0].digest is not None
        assert hashing._pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result() == 19


def test_the_end_does_not_wait_for_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "holes").touch()
    os.truncate(tmp_path / "holes", 1 << 42)  # hours
    with Hashing[int]() as hashing:
        handle = os.open(tmp_path / "holes", os.O_RDONLY)
        assert not [*hashing.add(1, handle)]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)
