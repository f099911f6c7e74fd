"""Exports into a tree during its commit: only the exported files are scanned again."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.result import ListedResult
from huai_server.export.into_tree import ExportOfTree
from huai_server.scan.mounts import NOT_ENTERED
from huai_server.state.errors import UsageError
from huai_server.store.repository import Repository
from tests.support.committing import SECONDS, Upstream
from tests.support.mounting import needs_mounts

STAMP = RelPath(b"d/new/stamp")
STAMP_FOLDER = RelPath(b"d/new")


class Export(ExportOfTree):
    """Makes a directory, and writes a file in it that says how much was scanned."""

    def __init__(self, tree: Path, then: Callable[[], object]) -> None:
        """`then` follows what is written."""
        self._place = tree / os.fsdecode(STAMP)
        self._then = then

    def prepare(self) -> None:
        """The directory is scanned."""
        self._place.parent.mkdir(exist_ok=True)

    @property
    def files(self) -> tuple[RelPath, ...]:
        """One, and one whose directory does not exist."""
        return (STAMP, RelPath(b"none/file"))

    def write(self, _repository: Repository, scanned: Snapshot, size: int, _time: int) -> bool:
        """The directory was seen."""
        assert scanned.directory(STAMP_FOLDER) is not None
        self._place.write_text(f"{size}")
        self._then()
        return True


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    upstream = Upstream(short_path)
    for number in range(300):
        upstream.write(f"d/f{number}", "x" * number)
    return upstream


def test_the_tree_is_scanned_once(upstream: Upstream) -> None:
    done = upstream.commit(export=Export(upstream.tree, lambda: upstream.write("other")))
    assert STAMP in upstream.entries()
    assert b"other" not in upstream.entries()
    assert done.counts.added == done.head.info.totals.entries == 304
    assert done.hashed_files == 301
    upstream.prove_sound()
    again = upstream.commit()
    assert again.counts.added == 1
    assert upstream.commit_listed("d/f0").listed is not None


def test_a_list_is_enough_with_an_export_too(upstream: Upstream) -> None:
    upstream.commit()
    export = Export(upstream.tree, lambda: None)

    def by_list(path: str) -> ListedResult:
        listed = upstream.commit_listed(path, export=export).listed
        assert listed is not None
        return listed

    assert "d/new is new" in by_list("d/f0").scan_cause
    assert STAMP in upstream.entries()
    upstream.write("d/f0", "changed")
    upstream.write("other")
    assert by_list("d/f0").scan_cause == ""
    assert upstream.file("d/f0").size == 7
    assert upstream.file("d/new/stamp").size == len(str(sum(range(300))))
    (upstream.tree / "d/new/stamp").unlink()  # as if a killed run had left it so
    assert by_list("d/f0").scan_cause == ""
    assert STAMP in upstream.entries()
    assert b"other" not in upstream.entries()
    upstream.prove_sound()
    done = upstream.commit()
    assert (done.counts.added, done.missed) == (1, 1)


def test_hardlinks_that_were_scanned_stay_known(upstream: Upstream) -> None:
    (upstream.tree / "z").hardlink_to(upstream.tree / "d" / "f1")
    upstream.commit(export=Export(upstream.tree, lambda: None))
    upstream.write("d/f1", "changed")
    listed = upstream.commit_listed("d/f1").listed
    assert listed is not None
    assert listed.scan_cause == ""
    assert upstream.commit().missed == 0


@needs_mounts
def test_a_file_system_that_is_mounted_meanwhile(upstream: Upstream) -> None:
    folder = upstream.tree / "d"

    def mount() -> None:
        command = ("mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder))
        subprocess.run(command, check=True, timeout=SECONDS)

    upstream.write("top")
    upstream.commit()
    before = upstream.paths()
    try:
        done = upstream.commit(export=Export(upstream.tree, mount))
    finally:
        subprocess.run(("umount", str(folder)), check=True, timeout=SECONDS)
    assert [(each.path, each.reason) for each in done.problems] == [(b"d", NOT_ENTERED)]
    assert upstream.paths() == before
    upstream.prove_sound()


def test_no_export_into_a_snapshot(upstream: Upstream, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        upstream.commit(at=tmp_path, export=Export(upstream.tree, lambda: None))
    assert upstream.repository.head() is None
