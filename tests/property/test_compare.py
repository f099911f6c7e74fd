"""The engine compares a tree with a commit like a comparison path by path, in any steps."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from huai_client.config.modes import Modes
from huai_client.diff.compare import (
    ComparedPart,
    Extraneous,
    Finding,
    Match,
    Missing,
    Scope,
    TreeComparison,
)
from huai_client.diff.selection import Selection
from huai_client.diff.table import CandidateTable
from huai_client.filters import Rules
from huai_client.publish.executor import execute
from huai_client.tree import Tree, View
from huai_client.tree.view import Unreadable
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import ROOT, RelPath, join, tree_order
from tests.property.test_apply import trees
from tests.property.test_filters import SENDING, rules_of
from tests.support.comparing import looked_at, selection_of
from tests.support.examples import examples
from tests.support.local_differences import differences_here
from tests.support.local_entries import stat_entry
from tests.support.local_trees import Staged, plan_for

FEW = examples(60)


def order(finding: Finding) -> bytes:
    if isinstance(finding, Match | Missing):
        directory = isinstance(finding.expected, Directory)
        return tree_order(finding.expected.path, directory=directory)
    return tree_order(finding.path, directory=finding.directory)


def everything(view: View, folder: RelPath = ROOT) -> Iterator[tuple[RelPath, bool]]:
    """Yield each path below DEST, with True for a directory."""
    leaves, folders = view.listing(folder)
    for name in leaves:
        yield join(folder, name), False
    for name in folders:
        if name != b".~tmp~":
            yield join(folder, name), True
            yield from everything(view, join(folder, name))


def names_of(view: View, path: RelPath) -> int:
    """Return the number of names of the inode at `path`, or 0."""
    status = view.stat(path)
    return 0 if status is None else status.st_nlink


def path_by_path(
    view: View, entries: list[Entry], top: bytes = b"", after: bytes = b""
) -> Iterator[Finding]:
    """Return the differences below `top` from `after` on, by comparing each path of either side."""

    def within(path: RelPath, *, directory: bool) -> bool:
        key = tree_order(path, directory=directory)
        return key.startswith(top) and (key > after or not after)

    inodes: set[tuple[int, int]] = set()
    for entry in entries:
        if not within(entry.path, directory=isinstance(entry, Directory)):
            continue
        present = stat_entry(view, entry.path)
        if present is None:
            yield Missing(entry)
            continue
        names = differences_here(view, present, entry)
        if isinstance(entry, File) and entry.link is None and names_of(view, entry.path) > 1:
            inode = present.device, present.inode
            names |= {"link"} if inode in inodes else set()
            inodes.add(inode)
        if names:
            yield Match(entry, names)
    paths = {entry.path for entry in entries}
    for path, directory in everything(view):
        if path not in paths and within(path, directory=directory):
            yield Extraneous(path, directory)


def compared(
    view: View, selection: Selection, part: ComparedPart | None = None, size: int = 1000
) -> list[Finding]:
    comparison = TreeComparison(view, selection, part)
    return [each for step in comparison.steps(size=size) for each in step.findings]


def in_some_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=order)


@FEW
@given(trees(), trees(), rules_of(SENDING, 3), st.sampled_from(Modes))
def test_a_comparison_finds_what_differs(
    have: list[Entry], want: list[Entry], lines: list[bytes], modes: Modes
) -> None:
    selection = Selection(selection_of(want).snapshot, Rules(Rules.parse(lines).rules, modes))
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        execute(plan_for(tree, have), tree, Staged(tree.dest), lambda *_: None)
        expected = in_some_order(list(path_by_path(tree, list(selection.entries()))))
        differences = compared(tree, selection)
        assert in_some_order(differences) == expected
        assert compared(tree, selection, size=1) == differences
    keys = [
        order(each) for each in differences if not isinstance(each, Extraneous) or each.directory
    ]
    assert keys == sorted(keys)


def modes_of(entry: Entry | None) -> tuple[object, ...]:
    """Return the parts of a mode that a comparison ignores."""
    return () if entry is None else (type(entry.mode), getattr(entry.mode, "stated", None))


@FEW
@given(trees(), trees(), rules_of(SENDING, 3), st.sampled_from(Modes))
def test_a_table_gets_what_is_missing_or_differs(
    have: list[Entry], want: list[Entry], lines: list[bytes], modes: Modes
) -> None:
    selection = Selection(selection_of(want).snapshot, Rules(Rules.parse(lines).rules, modes))
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        execute(plan_for(tree, have), tree, Staged(tree.dest), lambda *_: None)
        differences = compared(tree, selection)
        table = CandidateTable(tree.names)
        comparison = TreeComparison(tree, selection)
        rest = list(comparison.put_into(table))
        expected = [
            looked_at(tree, each) for each in differences if isinstance(each, Match | Missing)
        ]
        assert list(table) == expected
        assert [modes_of(each.expected) for each in table] == [
            modes_of(each.expected) for each in expected
        ]
    assert rest == [each for each in differences if isinstance(each, Extraneous)]


@FEW
@given(trees(), trees(), rules_of(SENDING, 3), st.sampled_from(Modes))
def test_a_survey_sees_what_a_look_at_each_path_does(
    have: list[Entry], want: list[Entry], lines: list[bytes], modes: Modes
) -> None:
    selection = Selection(selection_of(want).snapshot, Rules(Rules.parse(lines).rules, modes))
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        execute(plan_for(tree, have), tree, Staged(tree.dest), lambda *_: None)
        table = CandidateTable(tree.names)
        table.add([(entry.path, entry, ()) for entry in selection.entries()])
        table.add([(entry.path, None, ()) for entry in want])
        tree.survey(table.engine)
        for candidate in table:
            present = stat_entry(tree, candidate.path)
            assert (candidate.have, candidate.special) == (present and present.entry, False)
            if present is not None:
                assert (candidate.links, candidate.inode) == (
                    names_of(tree, candidate.path),
                    (present.device, present.inode),
                )
            if present is not None and candidate.expected is not None:
                assert candidate.differing == differences_here(tree, present, candidate.expected)
            else:
                assert not candidate.differing


@FEW
@given(trees(), trees(), st.data())
def test_a_part_of_a_tree_and_from_the_middle(
    have: list[Entry], want: list[Entry], data: st.DataObject
) -> None:
    selection = selection_of(want)
    folders = [entry.path for entry in want if isinstance(entry, Directory)]
    top = data.draw(st.sampled_from(folders))
    inside = [e for e in want if e.path == top or not top or e.path.startswith(top + b"/")]
    last = data.draw(st.sampled_from(inside))
    after = tree_order(last.path, directory=isinstance(last, Directory))
    listings = [*selection.snapshot.subtree(top)]
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        execute(plan_for(tree, have), tree, Staged(tree.dest), lambda *_: None)
        differing = path_by_path(tree, want)
        retyped = {each.expected.path for each in differing if isinstance(each, Match)}
        for begin in (b"", after):
            key = tree_order(top, directory=True)
            expected = list(path_by_path(tree, want, key, begin))
            differences = compared(tree, selection, ComparedPart(listings, Scope(top, after=begin)))
            # After the position of a leaf, no part knows that a directory is there instead.
            again = [e for e in differences if isinstance(e, Extraneous) and e.path in retyped]
            assert in_some_order([e for e in differences if e not in again]) == in_some_order(
                expected
            )
            assert not again or begin


def test_the_handle_of_the_tree_is_what_is_compared(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "f").touch()
    with View(tmp_path / "one") as view:
        os.rename(tmp_path / "one", tmp_path / "other")
        (tmp_path / "one").mkdir()
        differences = compared(view, selection_of([Directory(ROOT, 0)]))
    assert Extraneous(RelPath(b"f"), directory=False) in differences
    assert not any(isinstance(each, Unreadable) for each in differences)
