"""Trees that cannot be read as a whole: old entries stay, and every such path is named."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_server.commit.result import CommitResult
from tests.support.committing import SECONDS, Upstream

DENIED = "Permission denied"


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    for number in range(200):
        upstream.write(f"locked/deep/{number}", str(number))
    for path in ("locked/f", "locked/in/line", "open/secret", "open/plain", "top"):
        upstream.write(path, path)
    yield upstream
    if upstream.places.repository.exists() and upstream.repository.head():
        upstream.prove_sound()


def reasons_by_path(result: CommitResult) -> dict[str, str]:
    return {os.fsdecode(problem.path): problem.reason for problem in result.problems}


def test_an_unreadable_directory_stays_as_it_was(upstream: Upstream) -> None:
    upstream.commit()
    before = {path: e for path, e in upstream.entries().items() if path.startswith(b"locked")}
    upstream.write("open/new")
    upstream.write("locked/unseen")
    (upstream.tree / "locked").chmod(0)
    result = upstream.commit_as_nobody()
    assert reasons_by_path(result) == {"locked": DENIED}
    assert (result.exit_code, result.changed) == (41, True)
    after = {path: e for path, e in upstream.entries().items() if path.startswith(b"locked")}
    assert after == before
    assert "open/new" in upstream.paths()


def test_nothing_else_changed_makes_no_commit_but_is_told(upstream: Upstream) -> None:
    head = upstream.commit().head
    (upstream.tree / "locked").chmod(0)
    result = upstream.commit_as_nobody()
    assert (result.head, result.changed, result.exit_code) == (head, False, 41)


def test_the_first_commit_leaves_out_what_it_cannot_read(upstream: Upstream) -> None:
    (upstream.tree / "locked").chmod(0)
    (upstream.tree / "open/secret").chmod(0)
    result = upstream.commit_as_nobody()
    assert reasons_by_path(result) == {"locked": DENIED, "open/secret": DENIED}
    assert upstream.paths() == {"open", "open/plain", "top"}


def test_nothing_readable_is_an_error_that_says_so(short_path: Path) -> None:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    upstream.write("only/f")
    (upstream.tree / "only").chmod(0)
    with pytest.raises(AssertionError, match=r"EmptyRootError.*nothing .* could be read.*only"):
        upstream.commit_as_nobody()
    (upstream.tree / "only").chmod(0o755)


def test_an_unreadable_root_is_an_error(upstream: Upstream) -> None:
    head = upstream.commit().head
    upstream.tree.chmod(0)
    with pytest.raises(AssertionError, match=f"ScanError.*cannot read the tree at .*{DENIED}"):
        upstream.commit_as_nobody()
    upstream.tree.chmod(0o755)
    assert upstream.head == head


def test_an_unreadable_file_keeps_its_old_entry(upstream: Upstream) -> None:
    upstream.commit()
    before = upstream.file("open/secret")
    upstream.write("open/secret", "other content")
    (upstream.tree / "open/secret").chmod(0)
    result = upstream.commit_as_nobody()
    assert reasons_by_path(result) == {"open/secret": DENIED}
    assert upstream.file("open/secret") == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what its owner may not read")
def test_an_unreadable_file_needs_no_reading_if_it_is_known(upstream: Upstream) -> None:
    upstream.write("open/secret", mtime=5)
    (upstream.tree / "open/secret").chmod(0)
    upstream.commit()
    assert reasons_by_path(upstream.commit_as_nobody()) == {}


def test_without_digests_an_unreadable_file_is_no_trouble(upstream: Upstream) -> None:
    upstream.configure(digest="off")
    (upstream.tree / "open/secret").chmod(0)
    assert reasons_by_path(upstream.commit_as_nobody()) == {}
    assert upstream.file("open/secret").mode == 0


@contextmanager
def growing(path: Path) -> Iterator[None]:
    """Return a file that another process keeps appending to; long enough to be caught at it."""
    path.touch()
    os.truncate(path, 300 << 20)
    script = f"while :; do echo x >> '{path}'; done"
    process = subprocess.Popen(["/bin/sh", "-c", script])
    try:
        while path.stat().st_size == 300 << 20:
            assert process.poll() is None
        yield
    finally:
        process.kill()
        process.wait(SECONDS)


def test_a_volatile_file_that_changes_all_the_time_is_committed(upstream: Upstream) -> None:
    upstream.configure(volatile=("/project/trace/*", "open/new"))
    upstream.commit()
    with growing(upstream.tree / "open/new"):
        result = upstream.commit()
    assert (result.exit_code, reasons_by_path(result), result.changed) == (0, {}, True)
    assert upstream.file("open/new").digest is None
    assert upstream.commit().exit_code == 0
    assert upstream.file("open/new").digest is not None
    descriptor, _ = upstream.repository.snapshot(upstream.head)
    assert descriptor.publish == ("volatile /project/trace/*", "volatile open/new")
