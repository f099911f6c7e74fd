"""The files of a plan whose content is at a path that was surveyed."""

from huai_client.diff.candidate import Candidate, Reuse
from huai_client.diff.reuse import ANY_NUMBER, Matching, twins
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.local_trees import T0, at, file, linked

NUMBERS = iter(range(1, 10_000))


def renamed(path: bytes, like: File, size: int | None = None, mtime: int = T0) -> File:
    return like._replace(path=at(path), size=like.size if size is None else size, mtime=mtime)


def blind(entry: File) -> File:
    return entry._replace(digest=None)


def removed(entry: File, *past: File, inode: int = 0) -> Candidate:
    """Return a candidate for `entry`, which exists as recorded and should not."""
    have = blind(entry)._replace(link=None)
    numbers = (1, inode or next(NUMBERS))
    return Candidate(entry.path, have, None, past or (entry,), inode=numbers)


def stays(entry: File, expected: File) -> Candidate:
    return Candidate(entry.path, blind(entry), expected, (entry,), inode=(1, next(NUMBERS)))


def find_sources(
    fetches: list[File], *candidates: Candidate, may_share: bool = False
) -> dict[RelPath, Reuse]:
    return Matching(fetches, candidates, may_share=may_share).find_sources()


OLD = file(b"old/f")
NEW = renamed(b"new/g", OLD)


def test_a_move_by_digest_may_take_the_inode() -> None:
    assert find_sources([NEW], removed(OLD)) == {b"new/g": Reuse(at(b"old/f"), T0, most_links=1)}


def test_the_time_is_that_of_the_source_not_of_the_file_to_fetch() -> None:
    new = NEW._replace(mtime=1)
    assert find_sources([new], removed(OLD))[new.path].mtime == T0


def test_a_file_that_stays_keeps_its_inode() -> None:
    touched = OLD._replace(mtime=5)
    assert find_sources([NEW], stays(OLD, touched)) == {b"new/g": Reuse(at(b"old/f"), T0)}


def test_a_name_that_gets_other_content_gives_its_inode() -> None:
    other = renamed(b"old/f", file(b"x", 20))
    assert find_sources([NEW, other], stays(OLD, other))[NEW.path].most_links == 1


def test_one_inode_for_one_file_only() -> None:
    again = renamed(b"new/h", OLD)
    reuses = find_sources([NEW, again], removed(OLD))
    assert [reuses[path].most_links for path in (NEW.path, again.path)] == [1, 0]


def test_each_file_to_fetch_takes_another_source() -> None:
    other, again = renamed(b"old/g", OLD), renamed(b"new/h", OLD)
    reuses = find_sources([NEW, again], removed(OLD), removed(other))
    assert sorted(each.source for each in reuses.values()) == [b"old/f", b"old/g"]
    assert [each.most_links for each in reuses.values()] == [1, 1]


def test_all_names_of_an_inode_that_go_are_counted() -> None:
    second = linked(b"old/g", OLD)
    reuses = find_sources([NEW], removed(OLD, inode=7), removed(second, inode=7))
    assert reuses[NEW.path].most_links == 2


def test_a_file_that_has_to_part_is_its_own_source_by_its_digest() -> None:
    expected = OLD._replace(mode=0o600)
    candidate = stays(OLD, expected)._replace(differing=frozenset({"mode", "link"}), links=2)
    assert find_sources([expected], candidate) == {OLD.path: Reuse(OLD.path, T0, sure=False)}


def test_files_that_may_share_are_linked_unless_the_inode_changes() -> None:
    again = renamed(b"new/h", OLD)
    touched = stays(OLD, OLD._replace(mtime=5))
    for candidate, names in (
        (removed(OLD), ANY_NUMBER),
        (touched, ANY_NUMBER),
        (touched._replace(differing=frozenset({"mtime"})), 0),
    ):
        reuses = find_sources([NEW, again], candidate, may_share=True)
        assert [each.most_links for each in reuses.values()] == [names, names]


def test_an_inode_that_changes_under_another_name() -> None:
    """The old name is removed, the other one gets a new time: a link would get it too."""
    other = renamed(b"old/g", OLD)
    changes = stays(other, other._replace(mtime=5))._replace(differing=frozenset({"mtime"}))
    sources = removed(OLD, inode=7), changes._replace(inode=(1, 7))
    assert find_sources([NEW], *sources, may_share=True)[NEW.path].most_links == 0


def test_empty_files_are_left_alone() -> None:
    old = file(b"old/f", 0)
    new = renamed(b"new/f", old)
    assert find_sources([new], removed(old)) == {}
    assert dict(twins([new, old])) == {}


# ---------------------------------------------------------------- without digests

PLAIN = blind(file(b"old/f"))
MOVED = renamed(b"new/f", PLAIN)


def test_none_is_the_source() -> None:
    changed = removed(OLD)._replace(have=blind(OLD)._replace(mtime=T0 + 1))
    stayed = stays(PLAIN, PLAIN._replace(mode=0o600))
    for case, fetches, candidates in (
        ("changed locally", [NEW], [changed]),
        ("snapshots that disagree", [NEW], [removed(OLD, OLD, OLD._replace(digest=b"\1" * 32))]),
        ("another digest", [MOVED._replace(digest=b"\1" * 32)], [removed(file(b"old/f"))]),
        ("another name", [renamed(b"new/g", PLAIN)], [removed(PLAIN)]),
        ("another size", [MOVED._replace(size=PLAIN.size + 1)], [removed(PLAIN)]),
        ("another time", [MOVED._replace(mtime=T0 + 1)], [removed(PLAIN)]),
        ("a name that stays", [MOVED], [stayed]),
        ("two that it was", [MOVED], [removed(PLAIN), removed(renamed(b"other/f", PLAIN))]),
        ("two that it became", [MOVED, renamed(b"other/f", PLAIN)], [removed(PLAIN)]),
    ):
        assert find_sources(fetches, *candidates) == {}, case


def test_a_file_that_is_in_no_snapshot() -> None:
    extra = removed(PLAIN)._replace(past=())
    assert find_sources([MOVED], extra) == {}
    # With a digest to compare it may be a source.
    expected = renamed(b"new/f", file(b"old/f"))
    assert find_sources([expected], extra) == {
        b"new/f": Reuse(at(b"old/f"), T0, most_links=1, sure=False)
    }


# ---------------------------------------------------------------- fetched more than once


def test_twins_come_once_in_the_order_of_the_plan() -> None:
    other = file(b"z")
    files = [NEW, other, renamed(b"a", OLD, mtime=3), blind(renamed(b"b", OLD)), renamed(b"c", OLD)]
    assert dict(twins(files)) == {
        b"a": Reuse(NEW.path, T0, twin=True),
        b"c": Reuse(NEW.path, T0, twin=True),
    }


def test_twins_of_another_size_are_none() -> None:
    assert dict(twins([NEW, renamed(b"a", OLD, size=OLD.size + 1)])) == {}
