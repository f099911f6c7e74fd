"""Looking at each system call of a child before it happens: to kill it there, or to refuse it.

seccomp's user notifications (seccomp_unotify(2)) reach native code as well, which nothing inside
of Python does.  A call that would escape them (`call_table.ESCAPES`) fails the test.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import pickle
import platform
import select
import signal
import socket
import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.support.call_table import CHANGING, ESCAPES, ESCAPING_REQUESTS, GROUPS, IOCTL, REQUESTS

__all__ = [
    "CHANGING",
    "KILL",
    "Call",
    "Cut",
    "Outcome",
    "at",
    "from_on",
    "mark",
    "never",
    "process_of",
    "supervise",
]
Result = TypeVar("Result")

KILL = -1
"""The answer, instead of an errno, that kills the child right there."""

_SECONDS = 60_000
_NO_NEW_PRIVILEGES, _SET_FILTER, _NEW_LISTENER = 38, 1, 8
_SECCOMP = {"x86_64": 317, "aarch64": 277}[platform.machine()]
_ALLOW, _NOTIFY = 0x7FFF_0000, 0x7FC0_0000
_RECEIVE, _SEND = 0xC050_2100, 0xC018_2101
_CONTINUE = 1


class Call(NamedTuple):
    """A system call that is about to happen."""

    step: int
    """Counted from 1."""
    name: str
    thread: int = 0
    """The thread of the child, or of a program that it started."""
    arguments: tuple[int, ...] = ()
    """All six, as they stand in the registers."""


class Outcome(NamedTuple):
    """How the child ended."""

    calls: list[Call]
    killed: bool
    result: object
    """The result of its work, or None if it was killed."""


def supervise(
    names: Sequence[str], work: Callable[[], object], decide: Callable[[Call], int | None]
) -> Outcome:
    """Do `work` in a child; `decide` answers for each call: None, an errno, or `KILL`.

    `names` are groups of `call_table`.
    """
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child calls nothing that locks
        child = os.fork()
    if child == 0:
        _be_child(names, work, theirs)
    theirs.close()
    _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    try:
        calls = _watch(handles[0], names, decide, child)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        ours.close()
        raise
    finally:
        os.close(handles[0])
    with ours, ours.makefile("rb") as answer:
        raw = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return Outcome(calls, killed=True, result=None)
    good, result = pickle.loads(raw)  # noqa: S301 (our own child wrote it)
    assert good, result
    return Outcome(calls, killed=False, result=result)


def _be_child(names: Sequence[str], work: Callable[[], object], channel: socket.socket) -> None:
    answer: tuple[bool, object]
    try:
        listener = _listen(names)
        socket.send_fds(channel, [b"f"], [listener])
        os.close(listener)
        answer = True, work()
    except BaseException as error:  # noqa: BLE001 (goes to the parent, whatever it is)
        answer = False, repr(error)
    # Not by write(2), which may be watched, and the watcher may refuse it.
    channel.sendall(pickle.dumps(answer))
    os._exit(0)


def _listen(names: Sequence[str]) -> int:
    program = _program(
        [*ESCAPES, *(number for name in names for number in GROUPS[name])],
        [*ESCAPING_REQUESTS, *(each for name in names for each in REQUESTS.get(name, ()))],
    )
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    filters = struct.pack("HxxxxxxP", len(program), ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    listener: int = libc.syscall(_SECCOMP, _SET_FILTER, _NEW_LISTENER, filters)
    assert listener >= 0, os.strerror(ctypes.get_errno())
    return listener


def _program(numbers: Sequence[int], requests: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The filter, for the kernel: reports these calls, and ioctl(2) with these requests."""
    after = len(requests) + 2  # how far it is from the look at ioctl to the last instruction
    return [
        (0x20, 0, 0, 0),  # load the number of the call
        *((0x15, len(numbers) - place + after, 0, number) for place, number in enumerate(numbers)),
        (0x15, 0, after - 1, IOCTL),
        (0x20, 0, 0, 24),  # load the lower half of its second argument
        *((0x15, len(requests) - place, 0, request) for place, request in enumerate(requests)),
        (0x06, 0, 0, _ALLOW),
        (0x06, 0, 0, _NOTIFY),
    ]


def _name(names: Sequence[str], number: int, arguments: Sequence[int]) -> str:
    """The group of a call; `AssertionError` if it escapes all of them."""
    request = arguments[1] & 0xFFFF_FFFF
    for name in names:
        if number in GROUPS[name] or (number == IOCTL and request in REQUESTS.get(name, ())):
            return name
    escaped = ESCAPING_REQUESTS[request] if number == IOCTL else ESCAPES[number]
    raise AssertionError(f"{escaped} may change files, and no test can cut there")


def _watch(
    listener: int, names: Sequence[str], decide: Callable[[Call], int | None], child: int
) -> list[Call]:
    calls: list[Call] = []
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        ready = poll.poll(_SECONDS)
        assert ready, "the child does nothing"
        if not ready[0][1] & select.POLLIN:
            return calls  # it ended
        notice = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, notice)
        except FileNotFoundError:
            continue  # it died meanwhile
        identity, thread, _, number, _, _, *arguments = struct.unpack("QIIiIQ6Q", notice)
        name = _name(names, number, arguments)
        calls.append(Call(len(calls) + 1, name, thread, tuple(arguments)))
        answer = decide(calls[-1])
        if answer == KILL:
            os.kill(child, signal.SIGKILL)
            return calls
        flags = 0 if answer else _CONTINUE
        with contextlib.suppress(FileNotFoundError):
            fcntl.ioctl(listener, _SEND, struct.pack("QqiI", identity, 0, -(answer or 0), flags))


def never(_: Call) -> None:
    """Let everything happen."""


def at(step: int, answer: int) -> Callable[[Call], int | None]:
    """Decide on one call only."""
    return lambda call: answer if call.step == step else None


def from_on(step: int, answer: int = errno.ENOSPC) -> Callable[[Call], int | None]:
    """Decide on one call and all after it, as a full disk does."""
    return lambda call: answer if call.step >= step else None


class Cut:
    """Kills the child before the call with this number; those of its programs are not counted."""

    def __init__(self, point: int, answer: int = KILL, *, onward: bool = False) -> None:
        """0: nothing is killed; `answer`: an errno that the call gets instead, or all `onward`."""
        self._point = point
        self._answer = answer
        self._onward = onward
        self._child = 0
        self.names: list[str] = []
        """The groups of the calls so far."""

    @property
    def passed(self) -> int:
        """The number of calls."""
        return len(self.names)

    def __call__(self, call: Call) -> int | None:
        """For `supervise`."""
        process = process_of(call.thread)
        self._child = self._child or process
        if process != self._child:
            return None
        self.names.append(call.name)
        met = self.passed == self._point
        met |= self._onward and self.passed > self._point > 0
        return self._answer if met else None


def process_of(thread: int) -> int:
    """The process that a thread belongs to; 0: it ended meanwhile."""
    try:
        status = Path(f"/proc/{thread}/status").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(status.partition(b"\nTgid:")[2].split(maxsplit=1)[0])


def mark() -> None:
    """Be seen by who watches `mark`."""
    os.sched_get_priority_max(os.SCHED_OTHER)
