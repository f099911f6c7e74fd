"""Which files of a plan have their content at a path that was looked at."""

from huai_client.diff.candidate import Candidate
from huai_client.diff.reuse.matching import ANY_NUMBER, Matching, twins
from huai_client.diff.reuse.value import Reuse
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.local_trees import T0, at, file, linked

NUMBERS = iter(range(1, 10_000))


def named(path: bytes, like: File, size: int | None = None, mtime: int = T0) -> File:
    return like._replace(path=at(path), size=like.size if size is None else size, mtime=mtime)


def blind(entry: File) -> File:
    return entry._replace(digest=None)


def gone(entry: File, *past: File, inode: int = 0) -> Candidate:
    """`entry` stands there as it was said to, and should not."""
    have = blind(entry)._replace(link=None)
    numbers = (1, inode or next(NUMBERS))
    return Candidate(entry.path, have, None, past or (entry,), inode=numbers)


def stays(entry: File, wanted: File) -> Candidate:
    return Candidate(entry.path, blind(entry), wanted, (entry,), inode=(1, next(NUMBERS)))


def found(
    fetches: list[File], *candidates: Candidate, may_share: bool = False
) -> dict[RelPath, Reuse]:
    return Matching(fetches, candidates, may_share=may_share).found()


OLD = file(b"old/f")
NEW = named(b"new/g", OLD)


def test_nothing_here() -> None:
    assert found([NEW]) == {}


def test_a_move_by_digest_may_take_the_inode() -> None:
    assert found([NEW], gone(OLD)) == {b"new/g": Reuse(at(b"old/f"), T0, names=1)}


def test_the_time_of_the_source_is_told_not_that_of_the_wanted_file() -> None:
    new = NEW._replace(mtime=1)
    assert found([new], gone(OLD))[new.path].mtime == T0


def test_a_file_that_was_changed_here_is_no_source() -> None:
    candidate = gone(OLD)
    have = blind(OLD)._replace(mtime=T0 + 1)
    assert found([NEW], candidate._replace(have=have)) == {}


def test_snapshots_that_disagree_prove_nothing() -> None:
    other = OLD._replace(digest=b"\1" * 32)
    assert found([NEW], gone(OLD, OLD, other)) == {}


def test_another_size_is_no_source() -> None:
    assert found([NEW], gone(file(b"old/f", 11))) == {}


def test_a_file_that_stays_keeps_its_inode() -> None:
    touched = OLD._replace(mtime=5)
    assert found([NEW], stays(OLD, touched)) == {b"new/g": Reuse(at(b"old/f"), T0)}


def test_a_name_that_gets_other_content_gives_its_inode() -> None:
    other = named(b"old/f", file(b"x", 20))
    assert found([NEW, other], stays(OLD, other))[NEW.path].names == 1


def test_one_inode_for_one_file_only() -> None:
    again = named(b"new/h", OLD)
    reuses = found([NEW, again], gone(OLD))
    assert [reuses[path].names for path in (NEW.path, again.path)] == [1, 0]


def test_each_wanted_file_takes_another_source() -> None:
    other, again = named(b"old/g", OLD), named(b"new/h", OLD)
    reuses = found([NEW, again], gone(OLD), gone(other))
    assert sorted(each.source for each in reuses.values()) == [b"old/f", b"old/g"]
    assert [each.names for each in reuses.values()] == [1, 1]


def test_all_names_of_an_inode_that_go_are_counted() -> None:
    second = linked(b"old/g", OLD)
    reuses = found([NEW], gone(OLD, inode=7), gone(second, inode=7))
    assert reuses[NEW.path].names == 2


def test_a_file_that_has_to_part_is_its_own_source_by_its_digest() -> None:
    wanted = OLD._replace(mode=0o600)
    candidate = stays(OLD, wanted)._replace(differing=frozenset({"mode", "link"}), links=2)
    assert found([wanted], candidate) == {OLD.path: Reuse(OLD.path, T0, sure=False)}


def test_files_that_may_share_are_linked_unless_the_inode_changes() -> None:
    again = named(b"new/h", OLD)
    touched = stays(OLD, OLD._replace(mtime=5))
    for candidate, names in (
        (gone(OLD), ANY_NUMBER),
        (touched, ANY_NUMBER),
        (touched._replace(differing=frozenset({"mtime"})), 0),
    ):
        reuses = found([NEW, again], candidate, may_share=True)
        assert [each.names for each in reuses.values()] == [names, names]


def test_an_inode_that_changes_under_another_name() -> None:
    """The old name goes, the other one gets a new time: a link would get it too."""
    other = named(b"old/g", OLD)
    changes = stays(other, other._replace(mtime=5))._replace(differing=frozenset({"mtime"}))
    sources = gone(OLD, inode=7), changes._replace(inode=(1, 7))
    assert found([NEW], *sources, may_share=True)[NEW.path].names == 0


def test_empty_files_are_left_alone() -> None:
    old = file(b"old/f", 0)
    new = named(b"new/f", old)
    assert found([new], gone(old)) == {}
    assert dict(twins([new, old])) == {}


# ---------------------------------------------------------------- without digests

PLAIN = blind(file(b"old/f"))
MOVED = named(b"new/f", PLAIN)


def test_a_plain_move() -> None:
    assert found([MOVED], gone(PLAIN)) == {b"new/f": Reuse(at(b"old/f"), T0, names=1)}


def test_another_name_size_or_time_is_no_move() -> None:
    others = (
        named(b"new/g", PLAIN),
        MOVED._replace(size=PLAIN.size + 1),
        MOVED._replace(mtime=T0 + 1),
    )
    for other in others:
        assert found([other], gone(PLAIN)) == {}


def test_a_name_that_stays_is_no_move() -> None:
    assert found([MOVED], stays(PLAIN, PLAIN._replace(mode=0o600))) == {}


def test_two_that_it_may_have_been() -> None:
    assert found([MOVED], gone(PLAIN), gone(named(b"other/f", PLAIN))) == {}


def test_two_that_it_may_have_become() -> None:
    assert found([MOVED, named(b"other/f", PLAIN)], gone(PLAIN)) == {}


def test_no_snapshot_named_it() -> None:
    extra = gone(PLAIN)._replace(past=())
    assert found([MOVED], extra) == {}
    # With a digest to compare that is no matter.
    wanted = named(b"new/f", file(b"old/f"))
    assert found([wanted], extra) == {b"new/f": Reuse(at(b"old/f"), T0, names=1, sure=False)}


def test_a_digest_that_is_known_to_differ_is_not_tried() -> None:
    wanted = MOVED._replace(digest=b"\1" * 32)
    assert found([wanted], gone(file(b"old/f"))) == {}


# ---------------------------------------------------------------- wanted more than once


def test_twins_come_once_in_the_order_of_the_plan() -> None:
    other = file(b"z")
    files = [NEW, other, named(b"a", OLD, mtime=3), blind(named(b"b", OLD)), named(b"c", OLD)]
    assert dict(twins(files)) == {
        b"a": Reuse(NEW.path, T0, twin=True),
        b"c": Reuse(NEW.path, T0, twin=True),
    }


def test_twins_of_another_size_are_none() -> None:
    assert dict(twins([NEW, named(b"a", OLD, size=OLD.size + 1)])) == {}
