"""Digests of a scan: nothing is read twice, and nothing changed goes unnoticed."""

import errno
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from huai_native._native import Contents
from huai_schema.entries import File
from huai_schema.limits import DIGEST_BYTES
from huai_server.commit.digest.columns import DigestColumns
from huai_server.config.volatile import Volatile
from huai_server.scan import scan
from huai_server.scan.types import ScannedDirectory, Unreadable
from tests.support.committing import SECONDS, Upstream
from tests.support.scanners import OPENAT2, without_call


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    found = Upstream(tmp_path)
    for number in range(5):
        found.write(f"d{number % 2}/f{number}", f"content {number}")
    return found


def test_digests_are_those_of_the_content(upstream: Upstream) -> None:
    result = upstream.commit()
    assert (result.hashed_files, result.hashed_bytes) == (5, 45)
    for number in range(5):
        path = f"d{number % 2}/f{number}"
        assert upstream.file(path).digest == blake3(f"content {number}".encode()).digest()


def test_nothing_is_read_twice(upstream: Upstream) -> None:
    upstream.commit()
    upstream.write("d0/new", "abc")
    (upstream.tree / "d1").rename(upstream.tree / "renamed")
    os.utime(upstream.tree / "renamed")
    result = upstream.commit()
    assert (result.hashed_files, result.hashed_bytes) == (1, 3)


def test_what_is_known_is_not_even_opened(upstream: Upstream) -> None:
    path = upstream.tree / "d0/f0"
    upstream.commit()
    columns = DigestColumns(upstream.tree, upstream.places.folder, 2)
    upstream.tree.rename(upstream.tree.with_name("away"))
    upstream.tree.mkdir()
    found = list(columns.fill(scan(upstream.tree.with_name("away"))))
    assert (columns.hashed_files, path.exists()) == (0, False)
    assert not [item for item in found if isinstance(item, ScannedDirectory) and item.problems]


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
    """Files that the next commit reads; nothing may be wrong about their digests."""
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
    """Every file into a directory."""
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
    """`cp -al`, and the turning of rsnapshot: as many links as before, in other directories."""
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


def test_other_content_is_read_whatever_else_changed(upstream: Upstream) -> None:
    path = upstream.write("d0/f0", "before", mtime=1_600_000_000)
    upstream.commit()
    path.chmod(0o600)
    upstream.write("d0/f0", "longer content", mtime=1_600_000_000)
    assert hashed(upstream) == 1
    path.chmod(0o644)
    upstream.write("d0/f0", "LONGER CONTENT")
    assert hashed(upstream) == 1


def test_a_number_of_an_inode_that_is_used_again_is_another_file(disk_path: Path) -> None:
    """Lists of checksums have the same size, and reproducible builds the same time."""
    upstream = Upstream(disk_path)
    upstream.write("d0/first")
    upstream.commit()
    taken = set()
    for number in range(50):
        path = upstream.write(f"d0/sum{number}", f"{number:064}", mtime=1_600_000_000)
        inode = path.stat().st_ino
        taken.add(inode)
        assert hashed(upstream) == 1
        path.unlink()
    assert len(taken) < 50, "the file system of this folder uses no number again"


def test_a_root_that_cannot_be_read_is_told_as_such(short_path: Path) -> None:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    upstream.write("f")
    upstream.commit()
    upstream.tree.chmod(0)
    with pytest.raises(AssertionError, match=r"ScanError.*cannot read the tree at .*/tree: "):
        upstream.commit_as_nobody()
    upstream.tree.chmod(0o755)


def test_a_symlink_above_a_file_is_not_followed(upstream: Upstream, tmp_path: Path) -> None:
    """Whoever may write in the tree cannot make a commit of root open what lies elsewhere."""
    os.mkfifo(tmp_path / "f0")
    hidden = upstream.tree / "real"

    def swapped() -> Iterator[ScannedDirectory | Unreadable]:
        yield from scan(upstream.tree)
        (upstream.tree / "d0").rename(hidden)
        (upstream.tree / "d0").symlink_to(hidden)

    found = list(DigestColumns(upstream.tree, tmp_path, 2).fill(swapped()))
    problems = [p for item in found if isinstance(item, ScannedDirectory) for p in item.problems]
    assert {(problem.path, problem.reason) for problem in problems} == {
        (b"d0/f%d" % number, os.strerror(errno.ENOTDIR)) for number in (0, 2, 4)
    }


@pytest.mark.parametrize("restricted", [False, True])
def test_only_regular_files_are_opened_for_reading(tmp_path: Path, restricted: bool) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "d").mkdir()
    (tmp_path / "away").symlink_to("d")
    (tmp_path / "d/file").write_text("y")

    def all_of_them() -> list[object]:
        contents = Contents(bytes(tmp_path), 2)
        names = ("file", "d/file", "fifo", "link", "d", "away/file")
        return list(contents.find_out([wanted(tmp_path / name, name) for name in names]))

    found = without_call(OPENAT2, all_of_them) if restricted else all_of_them()
    digests = [each[1] if isinstance(each, tuple) else None for each in found]
    assert digests[:2] == [blake3(content).digest() for content in (b"x", b"y")]
    assert found[2:5] == [0, 0, 0]
    assert found[5] in (errno.ELOOP, errno.ENOTDIR)


def wanted(path: Path, name: str) -> tuple[bytes, bytes, None]:
    """A file to read, as a scan would have seen it."""
    it = path.lstat()
    identity = it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns, it.st_ctime_ns
    return name.encode(), struct.pack("<QQqqq", *identity), None


def test_a_digest_that_holds_for_the_time_of_birth_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    contents = Contents(bytes(tmp_path), 1)
    name, identity, _ = wanted(path, "f")
    (found,) = contents.find_out([(name, identity, None)])
    assert isinstance(found, tuple)
    birth, digest = found
    assert birth is not None, "the file system of temporary files tells no time of birth"
    assert contents.find_out([(name, identity, (birth, b"?" * 32))]) == [None]
    assert contents.find_out([(name, identity, (birth + 1, b"?" * 32))]) == [(birth, digest)]


def test_a_file_is_not_read_within_the_tick_of_its_last_change(tmp_path: Path) -> None:
    """A change in the same tick would leave its ctime as it is."""
    path = tmp_path / "f"
    contents = Contents(bytes(tmp_path), 1)
    for number in range(5):
        path.write_text(f"{number}")
        asked = wanted(path, "f")
        contents.find_out([asked])
        assert time.time_ns() - path.stat().st_ctime_ns >= 10_000_000


def test_a_volatile_file_that_changes_is_no_problem(upstream: Upstream, tmp_path: Path) -> None:
    columns = DigestColumns(upstream.tree, tmp_path, 2, Volatile(["/d0/f0", "fifo"]))
    found = list(columns.fill(tampered(upstream)))
    d0 = next(it for it in found if isinstance(it, ScannedDirectory) and it.listing.path == b"d0")
    assert {problem.path for problem in d0.problems} == {b"d0/f2", b"d0/f4"}
    assert d0.listing.digests == bytes(3 * DIGEST_BYTES)


def test_a_deleted_or_damaged_cache_costs_time_only(upstream: Upstream) -> None:
    tree = upstream.commit().head.tree
    for damage in (b"", b"rubbish" * 1000):
        upstream.places.digests.write_bytes(damage)
        result = upstream.commit()
        assert (result.changed, result.head.tree, result.hashed_files) == (False, tree, 5)
    assert upstream.commit().hashed_files == 0


def test_a_directory_larger_than_a_batch(upstream: Upstream) -> None:
    for number in range(5000):
        (upstream.tree / f"d0/{number}").touch()
    os.link(upstream.tree / "d0/0", upstream.tree / "d0/zz")
    result = upstream.commit()
    assert result.hashed_files == 5005
    empty = blake3(b"").digest()
    assert {upstream.file(f"d0/{number}").digest for number in (0, 4095, 4096, 4999)} == {empty}
    assert upstream.commit().hashed_files == 0


def tampered(upstream: Upstream) -> Iterator[ScannedDirectory | Unreadable]:
    """A scan, and what happens between it and the reading."""
    yield from scan(upstream.tree)
    (upstream.tree / "d0/f0").write_text("replaced!")
    (upstream.tree / "d0/f2").unlink()
    (upstream.tree / "d0/f4").unlink()
    (upstream.tree / "d0/f4").symlink_to("../secret")
    (upstream.tree / "d1/f1").unlink()
    os.mkfifo(upstream.tree / "d1/f1")
    (upstream.tree / "d1/f3").unlink()
    (upstream.tree / "d1/f3").mkdir()


def test_what_changed_since_the_scan_is_a_problem(upstream: Upstream, tmp_path: Path) -> None:
    upstream.write("secret", "content 4")
    columns = DigestColumns(upstream.tree, tmp_path, 2)
    found = list(columns.fill(tampered(upstream)))
    assert columns.hashed_files == 1
    problems = [p for item in found if isinstance(item, ScannedDirectory) for p in item.problems]
    assert {os.fsdecode(problem.path) for problem in problems} == {
        f"d{n % 2}/f{n}" for n in range(5)
    }
    assert all(problem.reason for problem in problems)
    for item in found:
        assert isinstance(item, ScannedDirectory)
        assert len(item.listing.digests) in (0, DIGEST_BYTES * item.listing.leaves.count(b"\n"))
