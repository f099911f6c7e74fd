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


def test_names_that_part() -> None:
    group = [candidate(A, "mode"), candidate(linked(b"b", A), "mode")]
    three = [candidate(A, links=3), candidate(linked(b"b", A), links=3), candidate(file(b"c"))]
    changes = candidate(A, "mode")
    for case, candidates, may_share, parted in (
        ("two that a cut run left", [candidate(B), candidate(A)], False, [b"b"]),
        ("the old name of a moved file", [removed(A), candidate(B)], False, []),
        ("a group of hardlinks", group, False, []),
        ("a group of hardlinks", group, True, []),
        ("two groups with one inode", three, False, [b"c"]),
        ("two inodes", [candidate(A), candidate(B, inode=2)], False, []),
        ("the one that changes", [changes], True, [b"a"]),
        ("the one that changes", [changes, candidate(B)], True, [b"a"]),
        ("none that changes", [candidate(A), candidate(B)], True, []),
        ("one whose other names all go", [changes, removed(B)], True, []),
        ("one that is alone", [candidate(A, "mode", links=1)], True, []),
    ):
        assert parting(*candidates, may_share=may_share) == parted, case
