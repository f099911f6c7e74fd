"""Directories that pass through a commit together: the same tree as one by one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_native._native import Run
from huai_schema.layout.layout import build
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.digest.columns import DigestColumns
from huai_server.commit.tree_builder import TreeBuilder
from huai_server.scan import scan, scan_runs
from huai_server.scan.native import take_apart
from huai_server.scan.types import Problem, Scanned, ScannedDirectory, ScanOptions
from tests.support.schema.memory import MemoryObjects


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Ordinary directories, and one of each other sort between them."""
    root = tmp_path / "tree"
    for number in range(40):
        (root / f"d{number:02}/sub\n{number}").mkdir(parents=True)
        (root / f"d{number:02}/f").write_text(f"{number}")
        (root / f"d{number:02}/sub\n{number}/\\").write_text("x" * number)
        (root / f"d{number:02}/link").symlink_to("f")
    os.link(root / "d05/f", root / "d06/g")
    (root / "d10").chmod(0o700)
    (root / "d15/f").chmod(0o600)
    (root / "d20/.~tmp~").mkdir()
    os.mkfifo(root / "d25/fifo")
    return root


def items(root: Path, *watched: bytes) -> Scanned:
    return scan_runs(root, ScanOptions(), watched)


def apart(scanned: Scanned) -> Iterator[object]:
    for item in scanned:
        yield from take_apart(item) if isinstance(item, Run) else (item,)


def one_by_one(root: Path, *watched: bytes) -> set[RelPath]:
    """The directories that are in no run."""
    found = items(root, *watched)
    return {item.listing.path for item in found if isinstance(item, ScannedDirectory)}


def test_what_has_to_be_decided_about_comes_by_itself(tree: Path) -> None:
    special = {b"", b"d10", b"d15", b"d20"}
    assert one_by_one(tree) == special
    assert one_by_one(tree, b"d30", b"d3") == special | {b"d30", b"d30/sub\n30"}


def test_taken_apart_they_are_what_a_scan_yields(tree: Path) -> None:
    assert list(apart(items(tree))) == list(scan(tree))


def laid_out(scanned: Scanned) -> tuple[bytes, object, MemoryObjects]:
    objects = MemoryObjects()
    assembly = TreeBuilder(None)
    tree = build(assembly.listings(scanned), objects)
    return tree, (assembly.totals, assembly.skipped, assembly.remarks.found()), objects


@pytest.mark.parametrize("digest", [False, True])
def test_a_commit_of_runs_is_a_commit_of_directories(
    tree: Path, tmp_path: Path, digest: bool
) -> None:
    def filled(found: Scanned, name: str) -> Scanned:
        if not digest:
            return found
        (tmp_path / name).mkdir()
        return DigestColumns(tree, tmp_path / name, 2).fill(found)

    together, said, _ = laid_out(filled(items(tree), "together"))
    assert (together, said) == laid_out(filled(scan(tree), "apart"))[:2]


def test_what_is_wrong_in_a_run_is_told_of_its_file(tree: Path, tmp_path: Path) -> None:
    def tampered() -> Scanned:
        yield from items(tree)
        (tree / "d30/f").write_text("changed")
        (tree / "d31/sub\n31/\\").unlink()

    columns = DigestColumns(tree, tmp_path, 2)
    found = list(columns.fill(iter(list(tampered()))))
    problems = [p for each in apart(iter(found)) for p in getattr(each, "problems", ())]
    assert [(p.path, p.reason) for p in problems] == [
        (b"d30/f", "changed while it was read"),
        (b"d31/sub\n31/\\", os.strerror(2)),
    ]
    root, _, objects = laid_out(iter(found))
    entries = {entry.path for entry in Snapshot(objects, root).entries()}
    assert not {problem.path for problem in problems} & entries
    assert {b"d29/f", b"d30/link", b"d32/f"} <= entries


def test_old_entries_stay_between_the_directories_of_a_run(tree: Path) -> None:
    """A name that cannot be read now was a directory: its place is in the middle of a run."""
    root, _, objects = laid_out(scan(tree))
    assembly = TreeBuilder(Snapshot(objects, root))

    def found() -> Scanned:
        for item in items(tree, b"d33"):
            if isinstance(item, ScannedDirectory) and not item.listing.path:
                yield item._replace(problems=(Problem(RelPath(b"d33"), "why"),))
            elif not isinstance(item, ScannedDirectory) or item.listing.path[:3] != b"d33":
                yield item

    again = build(assembly.listings(found()), objects)
    assert again == root
    assert [problem.path for problem in assembly.problems] == [b"d33"]


def test_a_large_directory_comes_by_itself(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    for number in range(4097):
        (tmp_path / f"large/{number}").touch()
    assert one_by_one(tmp_path) == {b"", b"large"}
    (tmp_path / "large/0").unlink()
    assert one_by_one(tmp_path) == {b""}
