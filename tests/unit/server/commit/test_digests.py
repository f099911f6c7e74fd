"""Digests of a commit: nothing is read twice, and nothing changed goes unnoticed."""

import errno
import os
import resource
import time
from pathlib import Path

import pytest
from blake3 import blake3

from huai_server.commit.result import CommitResult
from huai_server.state.errors import StorageError
from tests.support.committing import Upstream
from tests.support.old_kernels import OPENAT2, without_call
from tests.support.tampering import INDEXED, indexed_upstream, when_read

CHANGED = "changed while it was read"


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    for number in range(5):
        upstream.write(f"d{number % 2}/f{number}", f"content {number}")
    return upstream


def test_nothing_is_read_twice(upstream: Upstream) -> None:
    upstream.commit()
    upstream.write("d0/new", "abc")
    (upstream.tree / "d1").rename(upstream.tree / "renamed")
    os.utime(upstream.tree / "renamed")
    result = upstream.commit()
    assert (result.hashed_files, result.hashed_bytes) == (1, 3)


def test_content_changed_with_equal_size_and_time_is_found(upstream: Upstream) -> None:
    """A known plague of mirrors: files edited in place."""
    path = upstream.write("d0/f0", "before", mtime=1_600_000_000)
    upstream.commit()
    upstream.write("d0/f0", "behind", mtime=1_600_000_000)
    result = upstream.commit()
    assert result.counts.changed == 1
    assert result.hashed_files == 1
    assert upstream.file("d0/f0").digest == blake3(path.read_bytes()).digest()


@pytest.fixture
def indexed(tmp_path: Path) -> Upstream:
    return indexed_upstream(tmp_path, "d0/f0", "d0/f2", "d0/f4", "d1/f1", "d1/f3", "d1/f5")


def reasons_by_path(result: CommitResult) -> dict[str, str]:
    return {os.fsdecode(problem.path): problem.reason for problem in result.problems}


def test_a_symlink_above_a_file_is_not_followed(
    indexed: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who may write in the tree cannot make root's commit open a file elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    os.mkfifo(tmp_path / "elsewhere/f0")

    def swap() -> None:
        (indexed.tree / "d0").rename(tmp_path / "away")
        (indexed.tree / "d0").symlink_to(tmp_path / "elsewhere")

    when_read(monkeypatch, swap)
    reason = os.strerror(errno.ENOTDIR)
    assert reasons_by_path(indexed.commit()) == {f"d0/f{number}": reason for number in (0, 2, 4)}


def tamper(indexed: Upstream) -> None:
    tree = indexed.tree
    (tree / "d0/f0").write_text("replaced!")
    (tree / "d0/f2").unlink()
    (tree / "d0/f4").unlink()
    (tree / "d0/f4").symlink_to("../secret")
    (tree / "d1/f1").unlink()
    os.mkfifo(tree / "d1/f1")
    (tree / "d1/f3").unlink()
    (tree / "d1/f3").mkdir()


@pytest.mark.parametrize("restricted", [False, True])
def test_what_changed_since_the_scan_is_a_problem_and_only_files_are_opened(
    indexed: Upstream, monkeypatch: pytest.MonkeyPatch, restricted: bool
) -> None:
    when_read(monkeypatch, lambda: tamper(indexed))
    result = without_call(OPENAT2, indexed.commit) if restricted else indexed.commit()
    reasons = reasons_by_path(result)
    assert reasons.pop("d0/f2") == os.strerror(errno.ENOENT)
    assert reasons == dict.fromkeys(("d0/f0", "d0/f4", "d1/f1", "d1/f3"), CHANGED)
    assert result.hashed_files == 2
    assert {path for path in indexed.paths() if "/" in path} == {"d1/f5"}
    assert indexed.file("d1/f5").digest == blake3(b"6" * INDEXED).digest()


def test_a_shortage_of_handles_while_files_are_read_ends_the_commit(
    indexed: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow_no_more() -> None:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))

    when_read(monkeypatch, allow_no_more)
    try:
        with pytest.raises(StorageError, match="Too many open files"):
            indexed.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_file_is_not_read_within_the_tick_of_its_last_change(
    indexed: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change in the same tick would not change its ctime."""
    indexed.write("0", "x" * INDEXED)
    written = (indexed.tree / "0").stat().st_ctime_ns
    when_read(monkeypatch, lambda: read.append(time.time_ns()))
    read: list[int] = []
    indexed.commit()
    assert read[0] - written >= 10_000_000


def test_a_directory_larger_than_a_batch(upstream: Upstream) -> None:
    for number in range(5000):
        (upstream.tree / f"d0/{number}").touch()
    os.link(upstream.tree / "d0/0", upstream.tree / "d0/zz")
    result = upstream.commit()
    assert result.hashed_files == 5005
    empty = blake3(b"").digest()
    assert {upstream.file(f"d0/{number}").digest for number in (0, 4095, 4096, 4999)} == {empty}
    assert upstream.commit().hashed_files == 0
