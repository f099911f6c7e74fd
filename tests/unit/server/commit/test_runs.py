"""Directories that pass through a commit together: the same tree as one by one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_native._native import Run
from huai_schema.entries import File
from huai_schema.layout.layout import build
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.digest.columns import DigestColumns
from huai_server.commit.tree_builder import KEPT, TreeBuilder
from huai_server.scan import scan, scan_runs
from huai_server.scan.native import take_apart
from huai_server.scan.types import IDENTITY, Problem, Scanned, ScannedDirectory, ScanOptions
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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that comes in three parts; what has to be decided about is in the second."""
    root = tmp_path_factory.mktemp("crowd")
    large = root / "large"
    large.mkdir()
    for number in range(10_000):
        (large / f"{number:05}").write_text("x" * (number % 3))
    for number in range(100, 110):
        (large / f"{number:05}+").symlink_to(f"{number:05}\n")
    os.link(large / "00000", large / "00000+")
    os.link(large / "00001", large / "09999+")
    (large / "05000").chmod(0o600)
    (large / ".05001.abcdef").touch(mode=0o600)
    (large / "sub/below").mkdir(parents=True)
    os.mkfifo(large / "fifo")
    return root


def test_a_large_directory_comes_in_parts(crowd: Path) -> None:
    found = list(items(crowd))
    alone = [item for item in found if isinstance(item, ScannedDirectory)]
    runs = [item for item in found if isinstance(item, Run)]
    # The root; the part that begins with the unfinished file; that with what others may not read.
    assert [item.listing.path for item in alone] == [b"", b"large", b"large"]
    assert [item.goes_on for item in alone] == [False, False, True]
    assert [p.path for item in alone for p in item.left_out] == [b"large/.05001.abcdef"]
    assert [item.unreadable for item in alone] == [0, 0, 1]
    parts = [item for item in apart(iter(found)) if isinstance(item, ScannedDirectory)]
    large = [item for item in parts if item.listing.path == b"large"]
    assert [item.goes_on for item in large] == [False, True, True]
    assert [item.skipped for item in large] == [1, 0, 0]
    assert runs[-1].totals[0] == 2


def test_its_parts_are_what_a_scan_yields_of_it(crowd: Path) -> None:
    (whole,) = [item for item in scan(crowd) if isinstance(item, ScannedDirectory)][1:2]
    parts = [item for item in apart(items(crowd)) if isinstance(item, ScannedDirectory)]
    large = [item for item in parts if item.listing.path == b"large"]
    assert whole.listing.leaves == b"".join(item.listing.leaves for item in large)
    assert whole.listing.leaves.count(b"\n") == 10_012
    assert (whole.unreadable, whole.skipped, whole.hardlinks) == (1, 1, True)
    assert whole.listing.attributes == large[0].listing.attributes
    for *_, size, _, _, _, offset, _, _, _ in IDENTITY.iter_unpack(whole.identities):
        assert whole.listing.leaves[offset:].split(b"\t", 2)[1] == b"%d" % size


@pytest.mark.parametrize("digest", [False, True])
@pytest.mark.parametrize("top", [".", "large"])
def test_a_commit_of_parts_is_a_commit_of_the_whole(
    crowd: Path, tmp_path: Path, top: str, digest: bool
) -> None:
    """Also where the module's root is the large directory."""

    def filled(found: Scanned, name: str) -> Scanned:
        if not digest:
            return found
        (tmp_path / name).mkdir()
        return DigestColumns(crowd / top, tmp_path / name, 2).fill(found)

    tree, said, objects = laid_out(filled(items(crowd / top), "parts"))
    assert (tree, said) == laid_out(filled(scan(crowd / top), "whole"))[:2]
    entries = list(Snapshot(objects, tree).entries())
    assert sum(isinstance(entry, File) and entry.link is not None for entry in entries) == 2


def test_old_entries_stay_in_a_part(crowd: Path) -> None:
    """Names of every part cannot be read now; one was a directory."""
    root, _, objects = laid_out(scan(crowd))
    assembly = TreeBuilder(Snapshot(objects, root))
    gone = [b"00007", b"05007", b"09999", b"sub"]

    def found() -> Scanned:
        for item in apart(items(crowd)):
            assert isinstance(item, ScannedDirectory)
            if item.listing.path[:9] == b"large/sub":
                continue
            lines = item.listing.leaves.splitlines(keepends=True)
            here = [name for name in gone if any(line.startswith(name + b"\t") for line in lines)]
            if item.goes_on and b"09999" in here:
                here.append(b"sub")
            kept = [line for line in lines if line.partition(b"\t")[0] not in here]
            problems = tuple(Problem(RelPath(b"large/" + name), "why") for name in here)
            listing = item.listing._replace(leaves=b"".join(kept))
            yield item._replace(listing=listing, problems=problems, identities=b"")

    again = build(assembly.listings(found()), objects)
    before, after = Snapshot(objects, root), Snapshot(objects, again)
    old = {entry.path: entry for entry in before.entries()}
    new = {entry.path: entry for entry in after.entries()}
    assert new.keys() == old.keys()
    stayed = [b"large/" + name for name in gone]
    assert [problem.path for problem in assembly.problems] == stayed
    assert {problem.outcome for problem in assembly.problems} == {KEPT}


def test_a_file_of_a_part_that_changes_is_told_by_name(crowd: Path, tmp_path: Path) -> None:
    shutil.copytree(crowd, tmp_path / "tree", symlinks=True, ignore=lambda *_: ["fifo"])
    (tmp_path / "state").mkdir()
    found = list(items(tmp_path / "tree"))
    (tmp_path / "tree/large/09000").write_text("changed")
    columns = DigestColumns(tmp_path / "tree", tmp_path / "state", 2)
    filled = list(columns.fill(iter(found)))
    problems = [p for each in apart(iter(filled)) for p in getattr(each, "problems", ())]
    assert [(p.path, p.reason) for p in problems] == [(b"large/09000", "changed while it was read")]
    root, _, objects = laid_out(iter(filled))
    entries = {entry.path for entry in Snapshot(objects, root).entries()}
    assert b"large/09000" not in entries
    assert {b"large/08999", b"large/09001", b"large/sub/below"} <= entries


def test_a_directory_of_4096_entries_comes_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    for number in range(4096):
        (tmp_path / f"large/{number}").touch()
    (run,) = [item for item in items(tmp_path) if isinstance(item, Run)]
    assert [item.goes_on for item in take_apart(run)] == [False]
    (tmp_path / "large/4096").touch()
    runs = [item for item in items(tmp_path) if isinstance(item, Run)]
    parts = [item.goes_on for run in runs for item in take_apart(run)]
    assert parts == [False, True]
