"""Lists as updates leave them: several at a time, cut, of old programs, of another tree, long."""

from functools import partial
from pathlib import Path

import pytest

from huai_server.commit.change_lists import ChangeLists, read_lists
from huai_server.commit.result import CommitResult
from tests.support.committing import Upstream

LOG = b"""\
2026/03/01 04:05:06 [77] receiving file list
2026/03/01 04:05:06 [77] >f+++++++++ pool/new.deb
2026/03/01 04:05:06 [77] .d..t...... pool/
2026/03/01 04:05:07 [77] *deleting   pool/old.deb
2026/03/01 04:05:07 [77] sent 20 bytes  received 30 bytes  total size 40
"""
ITEMIZED = b"".join(line.split(b"] ", 1)[-1] + b"\n" for line in LOG.splitlines()[1:4])
SPELLINGS = {
    "rsync 3": b"*deleting   gone\n>f.st...... changed\n.f...pog... mode\ncLc.t...... link -> a\n",
    "ten letters": b"*deleting  gone\n>f.st..... changed\n.f...pog.. mode\ncL+++++++++ link -> a\n",
    "rsync 2.6": b"*deleting gone\n>f.st.... changed\n.f...pog. mode\ncLc.t.... link -> a\n",
    "names": b"deleting gone\nchanged\nmode\nlink -> a\n\nsent 9 bytes  received 2 bytes\n",
}
"""The same update, as reported by programs of several ages."""


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    for name in ("pool/old.deb", "pool/kept.deb", "gone", "changed", "mode"):
        upstream.write(name, name)
    (upstream.tree / "link").symlink_to("b")
    upstream.commit()
    return upstream


def read(folder: Path, *sources: bytes, spelling: str = "auto") -> ChangeLists:
    return read_lists(written(folder, *sources), spelling, folder / "tree")


def written(folder: Path, *sources: bytes) -> list[str]:
    for number, content in enumerate(sources):
        (folder / f"list{number}").write_bytes(content)
    return [str(folder / f"list{number}") for number in range(len(sources))]


def commit(upstream: Upstream, *sources: bytes) -> CommitResult:
    paths = written(upstream.root.parent, *sources)
    return upstream.commit(lists=partial(read_lists, paths, "auto"))


def never(count: int) -> bytes:
    return b"".join(b"pool/%d/%d\n" % (number % 100, number) for number in range(count))


def prove_complete(upstream: Upstream, result: CommitResult) -> None:
    """Check that the list named all changes, and nothing in vain."""
    assert result.listed is not None
    assert (result.changed, result.listed.scan_cause, result.listed.unknown) == (True, "", 0)
    scanned = upstream.commit()
    assert (scanned.changed, scanned.missed) == (False, 0)


def test_sources_of_all_formats_at_once(upstream: Upstream) -> None:
    tree = upstream.tree
    upstream.write("pool/new.deb", "new")
    (tree / "pool" / "old.deb").unlink()
    (tree / "gone").unlink()
    (tree / "mode").chmod(0o600)
    for name in ("by line", "new\nline", "by name", "last"):
        upstream.write(name, name)
    result = commit(
        upstream,
        LOG,
        b"by line\nmode",  # the end of a source ends its last line
        b"gone\0new\nline\0",
        b"sending incremental file list\nby name\n\ntotal size is 7  speedup is 1.00\n",
        f"{tree}/last".encode(),
    )
    prove_complete(upstream, result)


@pytest.mark.parametrize("spelt", SPELLINGS)
def test_programs_of_several_ages(upstream: Upstream, spelt: str) -> None:
    (upstream.tree / "gone").unlink()
    upstream.write("changed", "other")
    (upstream.tree / "mode").chmod(0o600)
    (upstream.tree / "link").unlink()
    (upstream.tree / "link").symlink_to("a")
    prove_complete(upstream, commit(upstream, SPELLINGS[spelt]))


@pytest.mark.parametrize(("log", "spelling"), [(LOG, "auto"), (ITEMIZED, "itemized")])
def test_a_log_that_ends_in_the_middle_of_a_line_is_noticed(
    tmp_path: Path, log: bytes, spelling: str
) -> None:
    first = log.index(b"\n") + 1
    for size in range(first, len(log) + 1):
        lists = read(tmp_path, log[:size], spelling=spelling)
        assert lists.is_cut == (log[size - 1 : size] != b"\n"), log[:size]
        assert lists.refused == 0


def test_what_stands_before_a_cut_is_committed(upstream: Upstream) -> None:
    upstream.write("pool/new.deb", "new")
    cut = ITEMIZED[: ITEMIZED.index(b"*del") + 4]
    result = commit(upstream, cut, b"pool/kept.deb\n")
    assert result.listed is not None
    assert result.listed.lists.is_cut
    assert (result.changed, result.listed.first_unknown) == (True, ())
    assert "pool/new.deb" in upstream.paths()


def test_a_log_of_another_tree_in_which_some_names_are_the_same(upstream: Upstream) -> None:
    before = upstream.entries_id
    result = commit(upstream, b"*deleting   changed\n>f+++++++++ pool/other.deb\n>f+++++++++ x/y\n")
    assert result.listed is not None
    assert (result.changed, upstream.entries_id) == (False, before)
    assert result.listed.first_unknown == (b"pool/other.deb", b"x/y")


def test_a_log_of_another_tree_by_absolute_paths(upstream: Upstream) -> None:
    (upstream.tree / "gone").unlink()
    other = upstream.tree.with_name("tree2")
    result = commit(upstream, b"".join(b"%s/gone%d\n" % (bytes(other), n) for n in range(30)))
    assert result.listed is not None
    lists = result.listed.lists
    assert (result.changed, lists.refused, lists.paths) == (False, 30, 0)
    assert len(lists.first_refused) == 20


def test_a_list_that_names_far_more_than_there_is(upstream: Upstream) -> None:
    upstream.write("pool/new.deb", "new")
    result = commit(upstream, never(70_000))
    assert result.listed is not None
    assert result.listed.scan_cause.startswith("the list names 70,000 paths")
    assert "pool/new.deb" in upstream.paths()
