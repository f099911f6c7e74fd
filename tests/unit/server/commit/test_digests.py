"""Digests of a commit: nothing is read twice, and nothing changed goes unnoticed."""

import errno
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from huai_schema.entries import File
from huai_server.commit.result import CommitResult
from huai_server.state.errors import StorageError
from tests.support.committing import SECONDS, Upstream
from tests.support.scanners import OPENAT2, without_call
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


def hashed(upstream: Upstream) -> int:
    """Return files that the next commit reads; nothing may be wrong with their digests."""
    result = upstream.commit()
    for path, entry in upstream.entries().items():
        if isinstance(entry, File):
            content = (upstream.tree / os.fsdecode(path)).read_bytes()
            assert entry.digest == blake3(content).digest(), path
    return result.hashed_files


def everything(upstream: Upstream, change: Callable[[Path], None]) -> None:
    for path in [path for path in upstream.tree.rglob("*") if path.is_file()]:
        change(path)


def moved(upstream: Upstream, folder: str) -> None:
    """Put every file into a directory."""
    (upstream.tree / folder).mkdir()
    everything(upstream, lambda path: rename(path, upstream.tree / folder / path.name))


def rename(old: Path, new: Path) -> None:
    old.rename(new)


def test_a_change_of_modes_or_owners_reads_nothing(upstream: Upstream) -> None:
    upstream.commit()
    everything(upstream, lambda path: path.chmod(0o600))
    assert hashed(upstream) == 0
    everything(upstream, lambda path: path.chmod(0o644))
    assert hashed(upstream) == 0
    if os.geteuid() == 0:
        everything(upstream, lambda path: os.chown(path, 1, 1))
        assert hashed(upstream) == 0


def test_renaming_files_reads_nothing(upstream: Upstream) -> None:
    upstream.commit()
    everything(upstream, lambda path: rename(path, path.with_name(f"{path.name}.old")))
    assert hashed(upstream) == 0
    moved(upstream, "d2")
    assert hashed(upstream) == 0


def copy_by_links(upstream: Upstream, source: str, target: str) -> None:
    command = ["cp", "-al", str(upstream.tree / source), str(upstream.tree / target)]
    subprocess.run(command, check=True, timeout=SECONDS)


def test_snapshots_by_hardlinks_read_nothing(upstream: Upstream) -> None:
    """`cp -al`, and the rotation of rsnapshot: as many links as before, in other directories."""
    upstream.commit()
    copy_by_links(upstream, "d0", "d0.1")
    assert hashed(upstream) == 0
    copy_by_links(upstream, "d0.1", "d0.2")
    assert hashed(upstream) == 0
    for _ in range(3):
        shutil.rmtree(upstream.tree / "d0.2")
        (upstream.tree / "d0.1").rename(upstream.tree / "d0.2")
        (upstream.tree / "d0").rename(upstream.tree / "d0.1")
        copy_by_links(upstream, "d0.1", "d0")
        assert hashed(upstream) == 0
    shutil.rmtree(upstream.tree / "d0.1")
    shutil.rmtree(upstream.tree / "d0.2")
    assert hashed(upstream) == 0


def test_a_number_of_an_inode_that_is_used_again_is_another_file(disk_path: Path) -> None:
    """Lists of checksums have the same size, and reproducible builds the same time."""
    upstream = Upstream(disk_path)
    upstream.write("d0/first")
    upstream.commit()
    used_inodes = set()
    for number in range(50):
        path = upstream.write(f"d0/sum{number}", f"{number:064}", mtime=1_600_000_000)
        inode = path.stat().st_ino
        used_inodes.add(inode)
        assert hashed(upstream) == 1
        path.unlink()
    assert len(used_inodes) < 50, "the file system of this folder uses no number again"


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
