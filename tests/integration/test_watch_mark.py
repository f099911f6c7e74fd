"""A mark on a file system: which changes of a tree it notes, and where it is refused."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_native._native import TreeWatch
from huai_server.watch.mark import FileSystemMark
from tests.support.committing import SECONDS
from tests.support.mounting import needs_mounts

pytestmark = needs_mounts


class Marked:
    """A tree and the mark on its file system."""

    def __init__(self, top: Path, *exclude: str) -> None:
        patterns = [text.encode() for text in exclude]
        self.mark = FileSystemMark(os.fsencode(top))
        self.tree = TreeWatch(
            os.fsencode(top), patterns, one_file_system=True, most=1000, is_noted=True
        )
        self.tree.take()

    def events(self) -> int:
        count, lost, is_gone = self.mark.read(self.tree)
        assert (lost, is_gone) == (False, False)
        return count

    def paths(self) -> int:
        self.events()
        changes = self.tree.take()
        assert changes is not None
        return changes[1]


@contextmanager
def mounted(point: Path, *arguments: str) -> Iterator[None]:
    subprocess.run(["mount", *arguments, point], check=True, timeout=SECONDS)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", point], check=True, timeout=SECONDS)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path, "-t", "tmpfs", "none"):
        folder = tmp_path / "a tree"
        (folder / "a" / "b" / "c").mkdir(parents=True)
        (folder / "a" / "file").write_text("1")
        (folder / "d").mkdir()
        yield folder


@pytest.fixture
def marked(top: Path) -> Iterator[Marked]:
    marked = Marked(top, "/incoming", "*.lock")
    yield marked
    marked.mark.close()


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (lambda top: (top / "a" / "b" / "c" / "new").write_text("1"), 1),
        (lambda top: (top / "a" / "file").write_text("2"), 1),
        (lambda top: (top / "a" / "file").unlink(), 1),
        (lambda top: (top / "a" / "file").chmod(0o600), 1),
        (lambda top: (top / "a" / "file").rename(top / "d" / "file"), 2),
        (lambda top: os.utime(top, (1, 1)), 1),
        (lambda top: (top / "d").chmod(0o700), 1),
        (lambda top: (top / "odd\n\udcff").write_text("1"), 1),
        (lambda top: (top / "new" / "x").mkdir(parents=True), 1),
        (lambda top: shutil.rmtree(top / "a"), 1),
        (lambda top: (top / "d" / "x.lock").write_text("1"), 1),  # the time of `d`
    ],
)
def test_a_change_is_noted(
    marked: Marked, top: Path, change: Callable[[Path], object], paths: int
) -> None:
    change(top)
    assert marked.paths() == paths
    assert marked.events() == 0


def test_what_is_left_out_or_outside_is_no_change(marked: Marked, top: Path) -> None:
    for path in (".~tmp~/huai", "incoming/x", "../outside"):
        (top / path).mkdir(parents=True)
        (top / path / "file").write_text("1")
    assert marked.events() == 0
    (top / "a" / "incoming").mkdir()
    assert marked.events() > 0


def test_a_moved_directory_has_its_new_path(marked: Marked, top: Path) -> None:
    (top / "a" / "b" / "c" / "file").write_text("1")
    assert marked.paths() == 1
    (top / "a").rename(top / "z")
    (top / "z" / "b" / "c" / "file").write_text("2")
    assert marked.paths() == 2  # `a`, and all below `z`
    (top / "z").rename(top.with_name("out"))
    assert marked.paths() == 1
    (top.with_name("out") / "b" / "file").write_text("1")
    assert marked.events() == 0
    top.with_name("out").rename(top / "d" / "in")
    assert marked.events() > 0
    (top / "d" / "in" / "b" / "file").write_text("2")
    assert marked.events() > 0


def test_an_overflow_is_reported(marked: Marked, top: Path) -> None:
    most = int(Path("/proc/sys/fs/fanotify/max_queued_events").read_text())
    for number in range(most + 1):
        (top / "d" / str(number)).touch()
    while not (state := marked.mark.read(marked.tree))[1]:
        assert state[0], "no event is left"


def test_where_events_would_be_missed_it_is_refused(top: Path, tmp_path: Path) -> None:
    with mounted(top / "d", "--bind", str(top / "a")), pytest.raises(OSError, match="cross-device"):
        FileSystemMark(os.fsencode(top))
    for name in ("lower", "upper", "work", "over"):
        (tmp_path / name).mkdir()
    parts = ",".join(f"{name}dir={tmp_path / name}" for name in ("lower", "upper", "work"))
    over = tmp_path / "over"
    with mounted(over, "-t", "overlay", "none", "-o", parts), pytest.raises(OSError):  # noqa: PT011
        FileSystemMark(os.fsencode(over))
