"""Files with large holes, which take no room: they cannot keep a commit at work for hours."""

import errno
import os
import struct
from pathlib import Path

import pytest
from blake3 import blake3

from huai_native._native import Contents
from huai_schema.errors import ExitCode
from huai_server.commit.digest.columns import (
    HOLES,
    WITHOUT_DIGEST,
    DigestColumns,
    LargeFiles,
    ReadingPolicy,
)
from huai_server.commit.result import CommitResult
from huai_server.scan import scan
from huai_server.scan.types import ScannedDirectory, ScanOptions
from tests.support.committing import NAME, Upstream, run_server

HUGE = 8 << 40
MEGABYTE = 1 << 20


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream(tmp_path)
    made.write("f", "content")
    return made


def sparse(path: Path, size: int) -> Path:
    path.touch()
    os.truncate(path, size)
    return path


def named(result: CommitResult) -> list[tuple[str, str, str]]:
    assert result.exit_code == (ExitCode.INCOMPLETE if result.problems else ExitCode.OK)
    return [(os.fsdecode(each.path), each.reason, each.outcome) for each in result.problems]


def test_a_file_of_nothing_but_a_hole_is_committed_without_a_digest(upstream: Upstream) -> None:
    huge = sparse(upstream.tree / "x", HUGE)
    for number in range(3):
        os.utime(huge, (number, number))
        result = upstream.commit()
        assert named(result) == [("x", HOLES, WITHOUT_DIGEST)]
        assert result.hashed_files == (0 if number else 1)
        entry = upstream.file("x")
        assert (entry.size, entry.mtime, entry.digest) == (HUGE, number * 10**9, None)
        assert upstream.file("f").digest
    result = upstream.commit()
    assert (named(result), result.changed) == ([("x", HOLES, WITHOUT_DIGEST)], False)
    sparse(huge, MEGABYTE)
    assert named(upstream.commit()) == []
    assert upstream.file("x").digest == blake3(bytes(MEGABYTE)).digest()


def test_so_it_is_where_a_list_names_it(upstream: Upstream) -> None:
    upstream.commit()
    sparse(upstream.tree / "d", HUGE)
    upstream.write("f", "changed")
    result = upstream.commit_listed("d", "f")
    assert named(result) == [("d", HOLES, WITHOUT_DIGEST)]
    assert (upstream.file("d").size, upstream.file("d").digest) == (HUGE, None)
    assert upstream.file("f").digest == blake3(b"changed").digest()


def test_the_command_line_says_what_to_do(upstream: Upstream) -> None:
    sparse(upstream.tree / "x", HUGE)
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    done = run_server(upstream.root, "commit", NAME)
    assert done.returncode == 41
    assert f"x: {HOLES}; {WITHOUT_DIGEST}" in done.stderr
    assert "huai-server digest" in done.stderr


def test_without_a_limit_holes_are_read(tmp_path: Path) -> None:
    """As `huai-server digest` does."""
    tree, folder = tmp_path / "tree", tmp_path / "kept"
    folder.mkdir()
    tree.mkdir()
    sparse(tree / "x", MEGABYTE)
    for limit, digest in ((1000, bytes(32)), (None, blake3(bytes(MEGABYTE)).digest())):
        policy = ReadingPolicy(holes=limit)
        for large in (None, LargeFiles(MEGABYTE, lambda _: None)):
            columns = DigestColumns(tree, folder, 2, large=large, policy=policy)
            (item,) = columns.fill(scan(tree, ScanOptions()))
            assert isinstance(item, ScannedDirectory)
            assert (item.listing.digests, item.problems) == (digest, ())
            (folder / "digests").unlink(missing_ok=True)


def test_the_limit_is_for_all_files_together_and_counts_nothing_but_holes(tmp_path: Path) -> None:
    files = [sparse(tmp_path / f"{number}", MEGABYTE) for number in range(3)]
    full = tmp_path / "full"
    full.write_bytes(bytes(4 * MEGABYTE))
    half = sparse(tmp_path / "half", MEGABYTE)
    with half.open("r+b") as file:
        file.seek(MEGABYTE // 4)
        file.write(b"x" * (MEGABYTE // 2))
    contents = Contents(bytes(tmp_path), 1, None, 5 * MEGABYTE // 2)
    found = contents.find_out([wanted(path) for path in (full, *files, half, full)])
    read = [each if isinstance(each, int) else "read" for each in found]
    assert read == ["read", "read", "read", errno.EFBIG, "read", "read"]


def wanted(path: Path) -> tuple[bytes, bytes, None]:
    """A file to read, as a scan would have seen it."""
    it = path.lstat()
    identity = it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns, it.st_ctime_ns
    return os.fsencode(path.name), struct.pack("<QQqqq", *identity), None
