"""Executing what a plan says gives the wanted tree, whatever stood there before."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from huai_client.execute import execute
from huai_client.surveying.merge import Match, Missing, merge
from huai_client.surveying.scope import tree_order
from huai_client.surveying.verify import verify
from huai_client.tree import Tree
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import join, parent, sort_key
from tests.local_trees import Staged, directory, file, in_order, linked, plan_for, symlink

NAMES = st.sampled_from([b"a", b"b", b"a\n", b"a.b", b"-", b"\xff", b"\1"])
MODES = st.sampled_from([0o644, 0o600, 0o4755, 0])
TIMES = st.sampled_from([0, -1, 1_600_000_000_000_000_001])


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """A small tree in tree order: few names, so that two trees meet often."""
    entries: list[Entry] = [directory(b"")]
    folders = [entries[0].path]
    for _ in range(draw(st.integers(0, 12))):
        path = join(draw(st.sampled_from(folders)), draw(NAMES))
        if any(entry.path == path for entry in entries):
            continue
        kind = draw(st.sampled_from(["file", "file", "hardlink", "directory", "symlink"]))
        mtime = draw(TIMES)
        if kind == "directory":
            entries.append(directory(path, mtime, draw(st.sampled_from([0o755, 0o555, 0o2700]))))
            folders.append(path)
        elif kind == "symlink":
            entries.append(symlink(path, draw(NAMES), mtime))
        elif kind == "hardlink":
            leaders = [e for e in entries if isinstance(e, File) and e.link is None]
            entries += [linked(path, draw(st.sampled_from(leaders)))] if leaders else []
        else:
            entries.append(file(path, draw(st.integers(0, 40)), mtime, draw(MODES)))
    return in_order(entries)


@settings(max_examples=60)
@given(trees(), trees())
def test_any_tree_becomes_any_other(before: list[Entry], after: list[Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        for wanted in (before, after):
            plan = plan_for(tree, wanted)
            report = execute(plan, tree, Staged(tree.dest), lambda *_: None)
            assert report.problems == ()
            assert list(verify(tree, wanted, content=True, owners=True)) == []


@settings(max_examples=60)
@given(trees(), trees())
def test_the_merge_finds_every_path_once(have: list[Entry], want: list[Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder, Tree(Path(folder)) as tree:
        execute(plan_for(tree, have), tree, Staged(tree.dest), lambda *_: None)
        findings = list(merge(tree, want, owners=tree.owners))
    found = [
        item.wanted.path if isinstance(item, Match | Missing) else item.path for item in findings
    ]
    mine, theirs = {entry.path: entry for entry in have}, {entry.path: entry for entry in want}
    assert sorted(found) == sorted(mine.keys() | theirs.keys())
    equal = {item.wanted.path for item in findings if isinstance(item, Match)}
    assert equal == mine.keys() & theirs.keys()


@given(trees())
def test_tree_order(entries: list[Entry]) -> None:
    keys = [tree_order(e.path, directory=isinstance(e, Directory)) for e in entries]
    assert keys == sorted(set(keys))
    listed: list[bytes] = []

    def visit(folder: bytes) -> None:
        inside = [entry for entry in entries if entry.path and parent(entry.path) == folder]
        inside.sort(key=lambda entry: sort_key(entry.path))
        listed.append(folder)
        listed.extend(entry.path for entry in inside if not isinstance(entry, Directory))
        for entry in inside:
            if isinstance(entry, Directory):
                visit(entry.path)

    visit(b"")
    assert [entry.path for entry in entries] == listed
