"""What a scan saw, put together with what was there before."""

from collections.abc import Iterable

import pytest

from huai_schema.entries import Entry, File
from huai_schema.layout.layout import build
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.tree_builder import CLAMPED, KEPT, LEFT_OUT, TreeBuilder
from huai_server.scan.types import IDENTITY, TIME, Problem, ScannedDirectory, Unreadable
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, file, listings, snapshot, tree_of

WHY = "Input/output error"
DIGEST = b"d" * 32


def scanned(
    tree: Tree, problems: Iterable[str] = (), vanished: Iterable[str] = ()
) -> list[ScannedDirectory]:
    """A tree as a scan yields it; `problems` are named, `vanished` directories are not."""
    found = []
    named = [RelPath(path.encode()) for path in problems]
    gone = {path.encode() for path in vanished}
    for listing in listings(tree.values()):
        if listing.path in gone:
            continue
        here = tuple(
            Problem(path, WHY) for path in named if path.rpartition(b"/")[0] == listing.path
        )
        found.append(ScannedDirectory(listing, b"", hardlinks=False, skipped=0, problems=here))
    return found


def assemble(
    past: Tree | None, items: Iterable[ScannedDirectory | Unreadable]
) -> tuple[dict[RelPath, Entry], TreeBuilder]:
    objects = MemoryObjects()
    assembly = TreeBuilder(snapshot(past, objects) if past else None)
    tree = build(assembly.listings(items), objects)
    return {entry.path: entry for entry in Snapshot(objects, tree).entries()}, assembly


def test_a_problem_keeps_the_old_line_and_digest() -> None:
    past = tree_of(file(b"a", 1), file(b"b", 2, digest=DIGEST), file(b"c", 3))
    now = tree_of(file(b"a", 5), file(b"d", 4))
    found, assembly = assemble(past, scanned(now, ["b"]))
    assert found == {**tree_of(file(b"a", 5), file(b"b", 2, digest=DIGEST), file(b"d", 4))}
    assert assembly.problems == [Problem(RelPath(b"b"), WHY, KEPT)]
    assert assembly.totals == (3, 1, 0, 11)


def test_a_problem_without_a_past_is_left_out() -> None:
    found, assembly = assemble(None, scanned(tree_of(file(b"a")), ["b"]))
    assert set(found) == {b"", b"a"}
    assert assembly.problems == [Problem(RelPath(b"b"), WHY, LEFT_OUT)]


@pytest.mark.parametrize("size", [3, 400])
def test_a_problem_that_was_a_directory_keeps_it_in_its_place(size: int) -> None:
    """Some file systems do not say in a listing what a directory is, and stat(2) failed."""
    middle = [directory(b"m"), directory(b"m/below")]
    middle += [file(b"m/below/%d" % number) for number in range(size)]  # type: ignore[misc]
    past = tree_of(directory(b"a"), *middle, directory(b"z"), file(b"z/f"))
    now = tree_of(directory(b"a"), directory(b"z"))
    found, _ = assemble(past, scanned(now, ["m"]))
    assert set(found) == set(past) - {b"z/f"}


def test_several_of_them_in_tree_order() -> None:
    past = tree_of(*(directory(path) for path in (b"a", b"a/x", b"b", b"b/y", b"c", b"d", b"d/e")))
    now = tree_of(directory(b"a"), directory(b"b"), directory(b"d"))
    found, assembly = assemble(past, scanned(now, ["c", "a/x", "b/y", "d/e", "zz"]))
    assert set(found) == set(past)
    outcomes = [problem.outcome for problem in assembly.problems]
    assert sorted(outcomes) == [*[LEFT_OUT], *[KEPT] * 4]


def test_a_time_of_a_directory_that_does_not_fit_is_told_and_keeps_nothing_back() -> None:
    now = tree_of(directory(b"d"), file(b"d/new"))
    root, below = scanned(now)
    told = Problem(RelPath(b"d"), TIME)
    found, assembly = assemble(tree_of(directory(b"d")), [root, below._replace(problems=(told,))])
    assert set(found) == {b"", b"d", b"d/new"}
    assert assembly.problems == [told._replace(outcome=CLAMPED)]


def test_a_file_where_a_directory_cannot_be_read_is_gone() -> None:
    past = tree_of(file(b"a"), file(b"b"))
    (root,) = scanned(tree_of(file(b"a")))
    found, assembly = assemble(past, [root, Unreadable(RelPath(b"b"), WHY)])
    assert set(found) == {b"", b"a"}
    assert assembly.problems == [Problem(RelPath(b"b"), WHY, LEFT_OUT)]


def hardlinked(
    path: bytes, inode: int, links: int, digest: bytes = DIGEST, mtime: int = 0
) -> ScannedDirectory:
    """A directory `path` with one file `x`, a name of `inode`."""
    tree = tree_of(file(b"x", mtime=mtime, digest=digest))
    (listing,) = listings(tree.values())
    identity = IDENTITY.pack(1, inode, 0, mtime, 0, links, 0, 0o644, 0, 0)
    return ScannedDirectory(
        listing._replace(path=RelPath(path)), identity, hardlinks=True, skipped=0
    )


def link_of(found: dict[RelPath, Entry], path: bytes) -> RelPath | None:
    entry = found[RelPath(path)]
    assert isinstance(entry, File)
    return entry.link


def test_a_group_that_changes_while_it_is_scanned_is_no_group() -> None:
    (root,) = scanned(tree_of())
    found, _ = assemble(None, [root, hardlinked(b"a", 7, 2), hardlinked(b"b", 7, 2, mtime=1)])
    assert link_of(found, b"b/x") is None
    found, _ = assemble(None, [root, hardlinked(b"a", 7, 2), hardlinked(b"b", 7, 2, b"e" * 32)])
    assert link_of(found, b"b/x") is None
    found, _ = assemble(None, [root, hardlinked(b"a", 7, 2), hardlinked(b"b", 7, 2)])
    assert link_of(found, b"b/x") == b"a/x"


def test_a_leader_that_could_not_be_read_does_not_lead() -> None:
    """It is replaced by its old entry, which may be quite another file."""
    (root,) = scanned(tree_of())
    unsure = hardlinked(b"a", 7, 3)._replace(problems=(Problem(RelPath(b"a/x"), WHY),))
    found, _ = assemble(None, [root, unsure, hardlinked(b"b", 7, 3), hardlinked(b"c", 7, 3)])
    assert RelPath(b"a/x") not in found
    assert link_of(found, b"b/x") is None
    assert link_of(found, b"c/x") == b"b/x"


def test_a_reused_inode_is_another_group() -> None:
    (root,) = scanned(tree_of())
    names = [hardlinked(name, 7, 2) for name in (b"a", b"b", b"c", b"d")]
    found, _ = assemble(None, [root, *names])
    assert [link_of(found, name + b"/x") for name in (b"a", b"b", b"c", b"d")] == [
        None,
        b"a/x",
        None,
        b"c/x",
    ]
