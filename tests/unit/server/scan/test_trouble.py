"""Difficult trees: unreadable, changing, hostile, and deeper than a path can be."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from huai_native._native import Scan
from huai_schema.limits import PATH_BYTES
from huai_schema.paths import RelPath
from huai_server.scan.types import KEEPS_CHANGING, ScanError, ScanOptions
from tests.support.processes import until
from tests.support.scanned import Unreadable, scan
from tests.support.scanners import (
    OPENAT2,
    directories,
    leaves,
    scan_native,
    scan_python,
    unreadable,
    without_call,
)
from tests.support.unprivileged import as_nobody, in_child

DENIED = "Permission denied"


@pytest.fixture
def open_path(short_path: Path) -> Path:
    """Make a folder that a process without privileges can reach."""
    short_path.chmod(0o755)
    return short_path


def test_unreadable_directories_stand_in_their_place(open_path: Path) -> None:
    for path in ("a", "b/below", "c"):
        (open_path / path).mkdir(parents=True)
    (open_path / "b").chmod(0)
    scan_native(open_path, ScanOptions())  # loads what the child may not load
    items = as_nobody(lambda: scan_native(open_path, ScanOptions()))
    (open_path / "b").chmod(0o755)
    assert unreadable(items) == {b"b": DENIED}
    assert items[2] == Unreadable(RelPath(b"b"), DENIED)
    assert list(directories(items)) == [b"", b"a", b"c"]


def test_a_mount_point_is_an_empty_directory() -> None:
    assert Path("/dev/pts").is_mount(), "this test needs Linux with /dev/pts"
    options = ScanOptions(exclude=(b"/shm",))  # this machine's temporary files may be there
    pts = directories(scan_native(Path("/dev"), options))[b"pts"]
    assert (pts.listing.leaves, pts.skipped) == (b"", 0)
    assert pts.listing.attributes
    crossed = directories(scan_native(Path("/dev"), options._replace(one_file_system=False)))[
        b"pts"
    ]
    assert crossed.skipped > 0


def make_deep(root: Path, lengths: list[int]) -> list[bytes]:
    """Make a chain of directories, each with a file and a subdirectory; returns their paths."""
    handle = os.open(root, os.O_RDONLY)
    paths = [b""]
    for length in lengths:
        name = b"d" * length
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
        os.close(os.open(b"file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.mkdir(b"empty", dir_fd=handle)
        paths.append(paths[-1] + b"/" + name if paths[-1] else name)
    os.close(handle)
    return paths


def test_paths_beyond_the_limit_are_skipped(short_path: Path) -> None:
    paths = make_deep(short_path, [255] * 20)
    items = directories(scan_native(short_path, ScanOptions()))
    fitting = [path for path in paths if len(path) <= PATH_BYTES]
    assert len(fitting) == 16 + 1
    assert [path for path in items if not path.endswith(b"empty")] == fitting
    assert [each.skipped for each in items.values() if each.skipped] == [3]


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Run `work` repeatedly in another process during the block."""
    child = os.fork()
    if child == 0:
        try:
            while os.getppid() != 1:
                work()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_directory_that_keeps_changing_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "busy").mkdir()
    (tmp_path / "calm").mkdir()
    for number in range(20_000):
        (tmp_path / f"busy/{number}").touch()

    def change() -> None:
        (tmp_path / "busy/x").touch()
        (tmp_path / "busy/x").unlink()

    with meanwhile(change):
        items = scan_native(tmp_path, ScanOptions())
        for _ in range(50):  # on a loaded machine a whole scan may pass without a change
            if unreadable(items):
                break
            assert list(directories(items)) == [b"", b"busy", b"calm"]
            items = scan_native(tmp_path, ScanOptions())
    assert unreadable(items) == {b"busy": KEEPS_CHANGING}
    assert list(directories(items)) == [b"", b"calm"]


def test_a_directory_swapped_for_a_symlink_is_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for number in range(100):
        (root / f"d/{number}").mkdir(parents=True)
        (outside / f"{number}").mkdir(parents=True)
        (outside / f"{number}/secret").touch()
    (outside / "secret").touch()

    def swap() -> None:
        (root / "d").rename(root / "real")
        (root / "d").symlink_to(outside)
        (root / "d").unlink()
        (root / "real").rename(root / "d")

    with meanwhile(swap):
        scans = 0
        for _ in range(200):
            with suppress(ScanError):  # on a slow machine the root changes in each look at it
                items = scan_native(root, ScanOptions(threads=2))
                assert not [path for path in leaves(items) if path.endswith(b"secret")]
                scans += 1
        assert scans


def test_old_kernels_give_the_same(short_path: Path) -> None:
    make_deep(short_path, [1, 255, 3] * 3)
    (short_path / "link").symlink_to("d")
    expected = scan_python(short_path, ScanOptions())
    assert without_call(OPENAT2, lambda: scan_native(short_path, ScanOptions())) == expected


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_large_and_wide_directories(tmp_path: Path, threads: int) -> None:
    for number in range(2000):
        (tmp_path / f"wide/{number}/below").mkdir(parents=True)
    (tmp_path / "large").mkdir()
    for number in range(5000):
        (tmp_path / f"large/{number:0100d}").touch()
    options = ScanOptions(threads=threads)
    items = scan_native(tmp_path, options)
    assert items == scan_python(tmp_path, options)
    assert len(directories(items)[b"large"].listing.leaves) > 512 * 1024


def test_a_scan_stopped_early_leaves_nothing_behind(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"{number}/below").mkdir(parents=True)

    def count(folder: str) -> int:
        return len(list(Path(folder).iterdir()))

    def stop_early() -> tuple[int, int]:
        for _ in range(20):
            items = scan(tmp_path, ScanOptions(threads=8))
            next(items)
            del items
        until(lambda: count("/proc/self/task") == 1)  # the kernel lists one a little longer
        return count("/proc/self/task"), count("/proc/self/fd")

    def compare() -> tuple[int, int, int]:
        scan_native(tmp_path, ScanOptions())
        before = count("/proc/self/fd")
        return *stop_early(), before

    threads, descriptors, before = in_child(compare)
    assert (threads, descriptors) == (1, before)


STARVED = """
import os, resource, sys
from pathlib import Path
from huai_server.scan import native
from huai_server.scan.types import ScanError, ScanOptions
assert len(list(native.scan_directories(Path("/dev/fd"), ScanOptions(threads=1)))) == 1
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * os.sysconf("SC_PAGESIZE") + (6 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    list(native.scan_directories(Path(sys.argv[1]), ScanOptions(threads=1)))
except ScanError as error:
    print(error.message)
"""


def test_no_memory_is_an_error_of_its_own(tmp_path: Path) -> None:
    for number in range(40_000):
        (tmp_path / f"{number:0100d}").touch()
    # A new interpreter, because this one may have enough spare memory.  One arena, because the C
    # library reserves 64 MiB of addresses for each thread, which would suffice.
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", STARVED, tmp_path],
        env={**os.environ, "PYTHONPATH": paths, "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    assert "out of memory" in done.stdout


def test_a_signal_is_handled_while_a_scan_waits(tmp_path: Path) -> None:
    """Python handles signals on its main thread only, which must not block in the engine."""
    handled = threading.Event()
    results: list[bool] = []

    class EndedError(Exception):
        pass

    def end(*_: object) -> None:
        handled.set()
        raise EndedError

    def slow_name(_: int) -> bytes:
        if not results:
            os.kill(os.getpid(), signal.SIGUSR1)
        results.append(handled.wait(20))
        return b"x"

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(EndedError):
            next(Scan(os.fsencode(tmp_path), ([], 2, True), (slow_name, slow_name)))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert results[0]


def test_an_error_of_a_look_up_is_handed_on(tmp_path: Path) -> None:
    def refuse(_: int) -> bytes:
        raise LookupError("no answer")

    items = Scan(os.fsencode(tmp_path), ([], 1, True), (refuse, refuse))
    with pytest.raises(LookupError, match="no answer"):
        next(items)
