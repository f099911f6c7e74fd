"""Files are read with low priority."""

import os
from pathlib import Path

from huai_client.tree.hashing import Hashing


def test_files_are_read_by_threads_that_give_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    with Hashing[int]() as hashing:
        handle = os.open(tmp_path / "file", os.O_RDONLY)
        assert [*hashing.add(1, handle), *hashing.rest()][0].digest is not None
        assert hashing._pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result() == 19
