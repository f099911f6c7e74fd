"""Hardlink groups as they come, go and lose members."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.committing import Upstream


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    yield upstream
    upstream.prove_sound()


def link(upstream: Upstream, leader: str, *others: str) -> None:
    for other in others:
        (upstream.tree / other).parent.mkdir(exist_ok=True, parents=True)
        os.link(upstream.tree / leader, upstream.tree / other)


def test_a_group_across_directories(upstream: Upstream) -> None:
    upstream.write("b/first", "content")
    link(upstream, "b/first", "b/second", "a/deep/er", "z")
    result = upstream.commit()
    # Leaves come before subdirectories: the top-level name leads.
    assert upstream.links() == {"b/first": "z", "b/second": "z", "a/deep/er": "z"}
    assert result.hashed_files == 1
    assert result.head.info.totals.bytes == 4 * 7
    assert upstream.file("b/second").digest == upstream.file("z").digest


def test_an_unchanged_group_is_not_read_again(upstream: Upstream) -> None:
    """Each commit read the names that were requested together with the first one."""
    upstream.write("a/leader", "content")
    link(upstream, "a/leader", "a/one", "b/two")
    assert upstream.commit().hashed_files == 1
    assert upstream.commit().hashed_files == 0


def test_a_group_partly_outside_of_the_tree(upstream: Upstream) -> None:
    upstream.write("in")
    os.link(upstream.tree / "in", upstream.root.parent / "out")
    upstream.write("in1")
    link(upstream, "in1", "in2")
    os.link(upstream.tree / "in1", upstream.root.parent / "out1")
    upstream.commit()
    assert upstream.links() == {"in2": "in1"}


def test_the_leader_goes(upstream: Upstream) -> None:
    upstream.write("a", "content")
    link(upstream, "a", "b", "c")
    upstream.commit()
    (upstream.tree / "a").unlink()
    result = upstream.commit()
    assert upstream.links() == {"c": "b"}
    # The number of names is not in the metadata; it moves the ctime, and explains it.
    assert (result.counts.removed, result.hashed_files) == (1, 0)


def test_a_link_in_place_of_a_copy(upstream: Upstream) -> None:
    upstream.write("a", "content", mtime=5)
    upstream.write("b", "content", mtime=5)
    upstream.commit()
    (upstream.tree / "b").unlink()
    link(upstream, "a", "b")
    upstream.commit()
    assert upstream.links() == {"b": "a"}


def three(upstream: Upstream) -> None:
    """Make one group in three directories, and some other names; the first leads."""
    upstream.write("a/x", "content")
    link(upstream, "a/x", "b/x", "b/y", "c/x")
    upstream.commit()
    assert upstream.links() == {"b/x": "a/x", "b/y": "a/x", "c/x": "a/x"}


def commit_without(upstream: Upstream, directory: str) -> None:
    """Commit while a directory cannot be read."""
    (upstream.tree / directory).chmod(0)
    result = upstream.commit_as_nobody()
    (upstream.tree / directory).chmod(0o755)
    assert [problem.path for problem in result.problems] == [directory.encode()]
    assert result.exit_code == 41
    upstream.prove_sound()


def test_members_that_cannot_be_read_stay_members(upstream: Upstream) -> None:
    three(upstream)
    upstream.write("new")
    commit_without(upstream, "b")
    assert upstream.links() == {"b/x": "a/x", "b/y": "a/x", "c/x": "a/x"}


def test_members_that_cannot_be_read_outlive_their_leader(upstream: Upstream) -> None:
    three(upstream)
    (upstream.tree / "a/x").unlink()
    commit_without(upstream, "b")
    assert upstream.links() == {}
    assert upstream.file("b/y").digest == upstream.file("c/x").digest
