"""Names that must not share an inode any more."""

from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.plan.planner import split_shared_inodes
from huai_schema.entries import File
from tests.support.local_trees import file, linked

MODE = frozenset({"mode"})


def candidate(entry: File, *differing: str, links: int = 2, inode: int = 1) -> Candidate:
    have = entry._replace(link=None, digest=None)
    return Candidate(
        entry.path, have, entry, links=links, differing=frozenset(differing), inode=(1, inode)
    )


def removed(entry: File, inode: int = 1) -> Candidate:
    return candidate(entry)._replace(expected=None, inode=(1, inode))


def parting(*candidates: Candidate, may_share: bool) -> list[bytes]:
    diff = TreeDiff(list(candidates), [], [])
    result = split_shared_inodes(diff, may_share=may_share).candidates
    assert [each.path for each in result] == [each.path for each in candidates]
    return [
        after.path
        for before, after in zip(candidates, result, strict=True)
        if after.differing - before.differing == {"link"}
    ]


A, B = file(b"a"), file(b"b")


def test_two_that_a_cut_run_left_with_one_inode() -> None:
    assert parting(candidate(B), candidate(A), may_share=False) == [b"b"]


def test_the_old_name_of_a_moved_file_still_goes() -> None:
    assert parting(removed(A), candidate(B), may_share=False) == []


def test_a_hardlink_group_stays_one() -> None:
    group = [candidate(A, "mode"), candidate(linked(b"b", A), "mode")]
    assert parting(*group, may_share=False) == []
    assert parting(*group, may_share=True) == []


def test_two_groups_with_one_inode() -> None:
    group = [candidate(A, links=3), candidate(linked(b"b", A), links=3), candidate(file(b"c"))]
    assert parting(*group, may_share=False) == [b"c"]


def test_other_inodes_are_others() -> None:
    assert parting(candidate(A), candidate(B, inode=2), may_share=False) == []


def test_one_that_changes_leaves_the_others() -> None:
    assert parting(candidate(A, "mode"), may_share=True) == [b"a"]
    assert parting(candidate(A, "mode"), candidate(B), may_share=True) == [b"a"]


def test_one_that_does_not_change_may_go_on_sharing() -> None:
    assert parting(candidate(A), candidate(B), may_share=True) == []


def test_one_whose_other_names_all_go_may_change() -> None:
    assert parting(candidate(A, "mode"), removed(B), may_share=True) == []


def test_one_that_is_alone_may_change() -> None:
    assert parting(candidate(A, "mode", links=1), may_share=True) == []
