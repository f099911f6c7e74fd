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

from huai_native._native import TreeReader
from huai_schema.limits import PATH_BYTES
from huai_server.scan.types import KEEPS_CHANGING, ScanError, ScanOptions
from tests.support import scan_oracle
from tests.support.old_kernels import OPENAT2, without_call
from tests.support.scanned import scan
from tests.support.unprivileged import as_nobody

DENIED = "Permission denied"


@pytest.fixture
def open_path(short_path: Path) -> Path:
    """Make a folder that a process without privileges can reach."""
    short_path.chmod(0o755)
    return short_path


def test_unreadable_directories_are_problems(open_path: Path) -> None:
    for path in ("a", "b/below", "c"):
        (open_path / path).mkdir(parents=True)
    (open_path / "b").chmod(0)
    scan(open_path)  # loads what the child may not load
    scanned = as_nobody(lambda: scan(open_path))
    (open_path / "b").chmod(0o755)
    assert scanned.problems == {b"b": DENIED}
    assert scanned.directories == [b"", b"a", b"c"]


def test_a_mount_point_is_an_empty_directory() -> None:
    assert Path("/dev/pts").is_mount(), "this test needs Linux with /dev/pts"
    options = ScanOptions(exclude=(b"/shm",))  # this machine's temporary files may be there
    scanned = scan(Path("/dev"), options)
    assert b"pts" in scanned.directories
    assert not [path for path in scanned.entries if path.startswith(b"pts/")]
    assert scan(Path("/dev"), options._replace(one_file_system=False)).skipped > scanned.skipped


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
    scanned = scan(short_path)
    fitting = [path for path in paths if len(path) <= PATH_BYTES]
    assert len(fitting) == 16 + 1
    assert [path for path in scanned.directories if not path.endswith(b"empty")] == fitting
    assert scanned.skipped == 3


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
        scanned = scan(tmp_path)
        for _ in range(50):  # on a loaded machine a whole scan may pass without a change
            if scanned.problems:
                break
            assert scanned.directories == [b"", b"busy", b"calm"]
            scanned = scan(tmp_path)
    assert scanned.problems == {b"busy": KEEPS_CHANGING}
    assert scanned.directories == [b"", b"calm"]


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
                scanned = scan(root)
                assert not [path for path in scanned.entries if path.endswith(b"secret")]
                scans += 1
        assert scans


def test_old_kernels_give_the_same(short_path: Path) -> None:
    make_deep(short_path, [1, 255, 3] * 3)
    (short_path / "link").symlink_to("d")
    expected = scan_oracle.scan(short_path, ScanOptions())
    assert without_call(OPENAT2, lambda: scan(short_path)) == expected


def test_large_and_wide_directories(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"wide/{number}/below").mkdir(parents=True)
    (tmp_path / "large").mkdir()
    for number in range(5000):
        (tmp_path / f"large/{number:0100d}").touch()
    scanned = scan(tmp_path)
    assert scanned == scan_oracle.scan(tmp_path, ScanOptions())
    assert len(scanned.leaves) == 5000


STARVED = """
import os, resource, sys
from pathlib import Path
from huai_server.scan.types import ScanError
from tests.support.scanned import scan
assert len(scan(Path("/dev/fd")).directories) == 1
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * os.sysconf("SC_PAGESIZE") + (6 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    scan(Path(sys.argv[1]))
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
            read_with(tmp_path, slow_name)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert results[0]


def test_an_error_of_a_look_up_is_handed_on(tmp_path: Path) -> None:
    def refuse(_: int) -> bytes:
        raise LookupError("no answer")

    with pytest.raises(LookupError, match="no answer"):
        read_with(tmp_path, refuse)


def read_with(root: Path, look_up: Callable[[int], bytes]) -> None:
    """Read a tree whose owners `look_up` names."""

    def explain(stage: str, cause: object) -> Exception:
        return AssertionError(stage, cause)

    owners = (look_up, look_up)
    reader = TreeReader(os.fsencode(root), ([], 2, True, False, None), owners, None, explain)
    reader.read_whole(None, (set(), False, True), lambda _: None, None, (b"", [], None))
