"""Digests of a scan: nothing is read twice, and nothing changed goes unnoticed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from huai_schema.limits import DIGEST_BYTES
from huai_server.digest.cache import DigestCache
from huai_server.digest.columns import DigestColumns
from huai_server.scan import scan
from huai_server.scan.types import ScannedDirectory, Unreadable
from tests.committing import Upstream


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
    cache = DigestCache(upstream.places.digests)
    columns = DigestColumns(upstream.tree, cache, 2)
    upstream.tree.rename(upstream.tree.with_name("away"))
    upstream.tree.mkdir()
    found = list(columns.fill(scan(upstream.tree.with_name("away"))))
    cache.close()
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
    cache = DigestCache(tmp_path / "cache")
    columns = DigestColumns(upstream.tree, cache, 2)
    found = list(columns.fill(tampered(upstream)))
    assert len(cache) == 1
    cache.close()
    problems = [p for item in found if isinstance(item, ScannedDirectory) for p in item.problems]
    assert {os.fsdecode(problem.path) for problem in problems} == {
        f"d{n % 2}/f{n}" for n in range(5)
    }
    assert all(problem.reason for problem in problems)
    for item in found:
        assert isinstance(item, ScannedDirectory)
        assert len(item.listing.digests) in (0, DIGEST_BYTES * item.listing.leaves.count(b"\n"))
