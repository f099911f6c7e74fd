"""Commits by lists: listed paths are read, and all others stay unchanged."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from huai_schema.errors import ExitCode
from huai_server.commit.list_record import LIST_RECORD
from huai_server.commit.result import CommitResult, ListedResult
from huai_server.scan.root import EmptyRootError
from tests.support.committing import Upstream


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    upstream.write("a/one", "1")
    upstream.write("b/two", "2")
    upstream.commit()
    yield upstream
    upstream.prove_sound()


def listed(result: CommitResult) -> ListedResult:
    assert result.listed is not None
    return result.listed


def test_what_is_named_is_committed_and_nothing_else(upstream: Upstream) -> None:
    upstream.write("a/one", "changed")
    upstream.write("b/three", "3")
    result = upstream.commit_listed("a/one")
    assert listed(result).scan_cause == ""
    assert (result.changed, result.hashed_files) == (True, 1)
    assert upstream.file("a/one").size == 7
    assert upstream.paths() == {"a", "b", "a/one", "b/two"}


def test_a_whole_scan_finds_what_lists_missed_and_says_so_once(upstream: Upstream) -> None:
    upstream.write("b/three", "3")
    upstream.commit_listed("a/one")
    scanned = upstream.commit()
    assert scanned.missed == 2  # b and b/three
    assert "b/three" in upstream.paths()
    assert upstream.commit().missed is None


def test_an_audit_finds_what_lists_missed_and_commits_nothing(upstream: Upstream) -> None:
    assert upstream.audit().exit_code == ExitCode.OK
    upstream.write("b/three", "3")
    upstream.commit_listed("a/one")
    before = upstream.head, sorted(upstream.places.repository.rglob("*"))
    audit = upstream.audit()
    assert (audit.counts.added, audit.counts.changed) == (1, 1)
    assert (audit.counts.total, audit.exit_code) == (2, ExitCode.DIFFERS)
    assert (upstream.head, sorted(upstream.places.repository.rglob("*"))) == before
    assert listed(upstream.commit_listed("b/three")).scan_cause == ""
    assert upstream.audit().counts.total == 0


def test_a_scan_reads_no_content_that_a_list_had_read(upstream: Upstream) -> None:
    upstream.write("a/one", "in place")
    upstream.write("a/new", "new")
    assert upstream.commit_listed("a/one", "a/new").hashed_files == 2
    assert upstream.commit().hashed_files == 0
    assert upstream.commit().hashed_files == 0


def test_digests_that_were_known_are_not_stored_again(upstream: Upstream) -> None:
    for number in range(100):
        upstream.write(f"a/{number}", f"{number}")
    upstream.commit()
    for content in ("first", "and the second"):
        upstream.write("a/one", content)
        upstream.commit_listed("a/one")
    # A state of each of the hundred would be more.
    assert 0 < (upstream.places.folder / "digests.left").stat().st_size < 1000


def test_a_list_names_a_directory_of_many_files(upstream: Upstream) -> None:
    """The engine passes its entries on in parts of 4,096."""
    for number in range(10_000):
        upstream.tree.joinpath("b", f"{number:05}").symlink_to("two")
    (upstream.tree / "b/deep").mkdir()
    result = upstream.commit_listed("b/**")
    assert listed(result).scan_cause == ""
    assert len(upstream.paths()) == 10_000 + 5
    (upstream.tree / "b/08000").unlink()
    assert upstream.commit_listed("b/**").changed
    assert not upstream.commit().changed


def test_a_list_of_another_tree_commits_nothing(upstream: Upstream) -> None:
    before = upstream.head
    (upstream.tree / "a").touch()  # even the time of a directory stays
    result = upstream.commit_listed("else/where", "a/nothing", "x")
    assert (result.changed, upstream.head) == (False, before)
    assert listed(result).unknown == 3
    assert listed(result).first_unknown == (b"a/nothing", b"else/where", b"x")


def test_what_was_never_there_is_named_and_skipped(upstream: Upstream) -> None:
    upstream.write("a/one", "1 and more")
    result = upstream.commit_listed("a/one", "a/nothing", "b/two/below", "b/two")
    assert result.changed
    assert listed(result).first_unknown == (b"a/nothing", b"b/two/below")


def test_paths_out_of_the_module_are_refused(upstream: Upstream) -> None:
    upstream.write("a/one", "1 and more")
    result = upstream.commit_listed(f"{upstream.tree}/a/one", "../x", "/etc/passwd", "a/../b")
    assert upstream.file("a/one").size == 10
    assert listed(result).lists.refused == 3
    assert listed(result).lists.first_refused == (b"../x", b"/etc/passwd", b"a/../b")


def test_a_symlink_is_not_followed(upstream: Upstream) -> None:
    outside = upstream.root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (upstream.tree / "link").symlink_to(outside)
    result = upstream.commit_listed("link/secret", "b/two")
    assert listed(result).first_unknown == (b"link/secret",)
    assert upstream.paths() == {"a", "b", "a/one", "b/two", "link"}


def test_a_directory_means_itself(upstream: Upstream) -> None:
    upstream.write("d/in", "in")
    (upstream.tree / "d").chmod(0o700)
    upstream.commit_listed("d")
    assert "d/in" not in upstream.paths()
    upstream.commit_listed("d/**")
    assert "d/in" in upstream.paths()


def test_excluded_reserved_and_unfinished_names_are_left_out(upstream: Upstream) -> None:
    upstream.configure(exclude=("*.tmp",))
    upstream.commit()
    upstream.write("a/x.tmp")
    upstream.write(".~tmp~/y")
    upstream.write(".z.Ab3xY9").chmod(0o600)
    result = upstream.commit_listed("a/x.tmp", ".~tmp~/y", ".z.Ab3xY9", "a")
    assert listed(result).scan_cause == ""
    assert upstream.paths() == {"a", "b", "a/one", "b/two"}


def test_what_cannot_be_read_keeps_its_entry(upstream: Upstream) -> None:
    upstream.write("a/one", "longer than before", mtime=1 << 34)
    result = upstream.commit_listed("a/one")
    assert result.exit_code == ExitCode.INCOMPLETE
    assert [each.path for each in result.problems] == [b"a/one"]
    assert upstream.file("a/one").size == 1


def test_an_empty_tree_is_refused(upstream: Upstream) -> None:
    for path in ("a/one", "b/two"):
        (upstream.tree / path).unlink()
        (upstream.tree / path).parent.rmdir()
    with pytest.raises(EmptyRootError):
        upstream.commit_listed("a/one", "b/two")


@pytest.mark.parametrize("cause", ["missing", "rubbish", "another", "settings", "audit"])
def test_the_whole_tree_is_looked_at_where_lists_are_not_enough(
    upstream: Upstream, cause: str
) -> None:
    places = upstream.places
    record = LIST_RECORD.load(places.lists)
    assert record is not None
    if cause == "missing":
        places.lists.unlink()
    elif cause == "rubbish":
        places.lists.write_bytes(b"\0{")
    elif cause == "another":
        LIST_RECORD.save(places.lists, msgspec.structs.replace(record, commit="0" * 40))
    elif cause == "settings":
        upstream.configure(exclude=("*.never",))
    else:
        upstream.configure(audit="1d")
        assert listed(upstream.commit_listed("a/one")).scan_cause == ""
        LIST_RECORD.save(
            places.lists, msgspec.structs.replace(record, scan_time=record.scan_time - 86_401)
        )
    upstream.write("c", "c")
    result = upstream.commit_listed("a/one")
    assert listed(result).scan_cause
    assert "c" in upstream.paths()
    assert listed(upstream.commit_listed("a/one")).scan_cause == ""


def test_a_first_commit_looks_at_the_whole_tree(short_path: Path) -> None:
    upstream = Upstream(short_path / "new")
    upstream.write("f", "f")
    upstream.write("g", "g")
    assert listed(upstream.commit_listed("f")).scan_cause
    assert upstream.paths() == {"f", "g"}


def test_the_new_leader_of_a_group_that_no_list_names(upstream: Upstream) -> None:
    upstream.write("g", "content")
    for name in ("h", "i", "b/j"):
        os.link(upstream.tree / "g", upstream.tree / name)
    upstream.commit()
    (upstream.tree / "g").unlink()
    upstream.commit_listed("g")
    assert upstream.links() == {"i": "h", "b/j": "h"}
    (upstream.tree / "h").unlink()
    (upstream.tree / "h").mkdir()
    upstream.commit_listed("h")
    assert upstream.links() == {"b/j": "i"}
    os.link(upstream.tree / "i", upstream.tree / "a" / "k")
    upstream.commit_listed("a/k", "i")
    assert upstream.links() == {"b/j": "i", "a/k": "i"}
    (upstream.tree / "i").unlink()
    upstream.commit_listed("i")
    assert upstream.links() == {"b/j": "a/k"}
    assert not upstream.commit().changed
