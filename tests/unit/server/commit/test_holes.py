"""Files with large holes, which take no space: they cannot keep a commit busy for hours."""

import os
from pathlib import Path

import pytest
from blake3 import blake3

from huai_schema.errors import ExitCode
from huai_server.commit import tree_reader
from huai_server.commit.later import digest_tree
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.result import CommitResult
from huai_server.commit.tree_reader import HOLES, WITHOUT_DIGEST
from tests.support.committing import NAME, Upstream, run_server

HUGE = 8 << 40
MEGABYTE = 1 << 20


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.write("f", "content")
    return upstream


def sparse(path: Path, size: int) -> Path:
    path.touch()
    os.truncate(path, size)
    return path


def problems_of(result: CommitResult) -> list[tuple[str, str, str]]:
    assert result.exit_code == (ExitCode.INCOMPLETE if result.problems else ExitCode.OK)
    return [(os.fsdecode(each.path), each.reason, each.outcome) for each in result.problems]


def test_a_file_of_nothing_but_a_hole_is_committed_without_a_digest(upstream: Upstream) -> None:
    huge = sparse(upstream.tree / "x", HUGE)
    for number in range(3):
        os.utime(huge, (number, number))
        result = upstream.commit()
        assert problems_of(result) == [("x", HOLES, WITHOUT_DIGEST)]
        assert result.hashed_files == (0 if number else 1)
        entry = upstream.file("x")
        assert (entry.size, entry.mtime, entry.digest) == (HUGE, number * 10**9, None)
        assert upstream.file("f").digest
    result = upstream.commit()
    assert (problems_of(result), result.changed) == ([("x", HOLES, WITHOUT_DIGEST)], False)
    sparse(huge, MEGABYTE)
    assert problems_of(upstream.commit()) == []
    assert upstream.file("x").digest == blake3(bytes(MEGABYTE)).digest()


def test_so_it_is_where_a_list_names_it(upstream: Upstream) -> None:
    upstream.commit()
    sparse(upstream.tree / "d", HUGE)
    upstream.write("f", "changed")
    result = upstream.commit_listed("d", "f")
    assert problems_of(result) == [("d", HOLES, WITHOUT_DIGEST)]
    assert (upstream.file("d").size, upstream.file("d").digest) == (HUGE, None)
    assert upstream.file("f").digest == blake3(b"changed").digest()


def test_the_command_line_says_what_to_do(upstream: Upstream) -> None:
    sparse(upstream.tree / "x", HUGE)
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    done = run_server(upstream.root, "commit", NAME)
    assert done.returncode == 41
    assert f"x: {HOLES}; {WITHOUT_DIGEST}" in done.stderr
    assert "huai-server digest" in done.stderr


def test_without_a_limit_holes_are_read(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read as `huai-server digest` does."""
    for size in (MEGABYTE, 2 * MEGABYTE):
        upstream.configure(block_index=size)
        sparse(upstream.tree / f"{size}", size)
    monkeypatch.setattr(tree_reader, "_HOLES", 1000)
    sizes = (MEGABYTE, 2 * MEGABYTE)
    assert problems_of(upstream.commit()) == [(f"{size}", HOLES, WITHOUT_DIGEST) for size in sizes]
    digest_tree(NAME, upstream.module, upstream.places, ReadLimits())
    for size in (MEGABYTE, 2 * MEGABYTE):
        assert upstream.file(f"{size}").digest == blake3(bytes(size)).digest()


def test_the_limit_is_for_all_files_together_and_counts_nothing_but_holes(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_reader, "_HASH_THREADS", 1)
    (upstream.tree / "a").write_bytes(bytes(4 * MEGABYTE))
    for name in ("b", "c", "d"):
        sparse(upstream.tree / name, MEGABYTE)
    half = sparse(upstream.tree / "e", MEGABYTE)
    with half.open("r+b") as file:
        file.seek(MEGABYTE // 4)
        file.write(b"x" * (MEGABYTE // 2))
    monkeypatch.setattr(tree_reader, "_HOLES", 5 * MEGABYTE // 2)
    assert problems_of(upstream.commit()) == [("d", HOLES, WITHOUT_DIGEST)]
    without = {path for path in ("a", "b", "c", "d", "e", "f") if not upstream.file(path).digest}
    assert without == {"d"}
