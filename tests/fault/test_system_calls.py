"""No change of a file escapes the faults: each call is seen, or makes the test fail."""

import ctypes
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.call_table import CHANGING, ESCAPES, GROUPS, REQUESTS
from tests.support.system_calls import KILL, mark, never, supervise

FICLONE = 0x4004_9409
FCHMODAT2 = 452
FS_IOC_SETFLAGS = 0x4008_6602
IO_URING_SETUP = 425


def system_call(number: int, *arguments: int) -> int:
    """By number, whatever becomes of it."""
    result: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    return result


def by_handle(request: int) -> Callable[[int], object]:
    def ask(handle: int) -> None:
        fcntl.ioctl(handle, request, b"\0" * 8)

    return ask


@pytest.mark.parametrize(
    ("group", "change"),
    [
        ("attributes", lambda handle: os.setxattr(handle, "user.a", b"1")),
        ("chmod", lambda handle: os.fchmod(handle, 0o600)),
        ("chmod", lambda handle: system_call(FCHMODAT2, handle, 0, 0, 0)),
        ("clone", by_handle(FICLONE)),
        ("copy", lambda handle: os.copy_file_range(handle, handle, 1, 0, 5)),
        ("mknod", lambda handle: os.mknod(f"/proc/self/fd/{handle}/x")),
        ("send", lambda handle: os.sendfile(handle, handle, 0, 1)),
        ("times", lambda handle: os.utime(handle, (1, 1))),
        ("truncate", lambda handle: os.posix_fallocate(handle, 0, 1)),
        ("write", lambda handle: os.pwritev(handle, [b"1"], 0)),
        ("write", lambda handle: os.writev(handle, [b"1"])),
    ],
)
def test_a_change_is_seen(tmp_path: Path, group: str, change: Callable[[int], object]) -> None:
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)

    def work() -> None:
        with suppress(OSError):  # where a file system lacks it, it was tried
            change(handle)

    assert [call.name for call in supervise(CHANGING, work, never).calls] == [group]
    assert supervise(CHANGING, work, lambda _: KILL).killed
    os.close(handle)


@pytest.mark.parametrize(
    "change", [lambda _: system_call(IO_URING_SETUP, 1, 0), by_handle(FS_IOC_SETFLAGS)]
)
def test_what_would_escape_fails(tmp_path: Path, change: Callable[[int], object]) -> None:
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(AssertionError, match="no test can cut there"):
        supervise(("rename",), lambda: change(handle), never)
    os.close(handle)


def test_other_requests_of_a_device_pass(tmp_path: Path) -> None:
    fionread = 0x541B
    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    outcome = supervise(CHANGING, lambda: fcntl.ioctl(handle, fionread, b"\0" * 8), never)
    assert (outcome.calls, outcome.result) == ([], b"\0" * 8)
    os.close(handle)


def test_a_child_says_where_it_is() -> None:
    assert [call.name for call in supervise(("mark",), mark, never).calls] == ["mark"]


def test_no_call_is_in_two_groups() -> None:
    numbers = [number for name in CHANGING for number in GROUPS[name]]
    assert len({*numbers, *ESCAPES}) == len(numbers) + len(ESCAPES)
    assert REQUESTS.keys() <= {*CHANGING}
