"""Looking at each system call of a child before it happens: to kill it there, or to refuse it.

seccomp's user notifications (seccomp_unotify(2)) reach C libraries as well, which nothing inside
of Python does.
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
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

_NUMBERS = {
    "x86_64": {
        "chmod": (90, 91, 268),
        "getdents": (217,),
        "link": (86, 265),
        "mkdir": (83, 258),
        "open": (2, 257, 437),
        "owner": (92, 93, 94, 260),
        "read": (0, 17),
        "rename": (82, 264, 316),
        "symlink": (88, 266),
        "sync": (74, 75),
        "syncfs": (306,),
        "times": (280,),
        "truncate": (76, 77),
        "unlink": (84, 87, 263),
        "write": (1, 18),
    },
    "aarch64": {
        "chmod": (52, 53),
        "getdents": (61,),
        "link": (37,),
        "mkdir": (34,),
        "open": (56, 437),
        "owner": (54, 55),
        "read": (63, 67),
        "rename": (38, 276),
        "symlink": (36,),
        "sync": (82, 83),
        "syncfs": (267,),
        "times": (88,),
        "truncate": (45, 46),
        "unlink": (35,),
        "write": (64, 68),
    },
}[platform.machine()]
CHANGING = ("chmod", "link", "mkdir", "rename", "sync", "truncate", "unlink", "write")
"""What changes files or makes changes last; opening, which may do either, is not among them."""

KILL = -1
"""What to answer instead of an errno so that the child dies right there."""

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
    """Of the child, or of a program that it started."""
    arguments: tuple[int, ...] = ()
    """All six, as they stand in the registers."""


class Outcome(NamedTuple):
    """How the child ended."""

    calls: list[Call]
    killed: bool
    result: object
    """What its work returned; None if it was killed."""


def supervise(
    names: Sequence[str], work: Callable[[], object], decide: Callable[[Call], int | None]
) -> Outcome:
    """Do `work` in a child; `decide` answers for each call: None, an errno, or `KILL`."""
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child calls nothing that locks
        child = os.fork()
    if child == 0:
        _be_child(names, work, theirs, writer)
    os.close(writer)
    theirs.close()
    with ours:
        _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    try:
        calls = _watch(handles[0], names, decide, child)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(handles[0])
    with os.fdopen(reader, "rb") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return Outcome(calls, killed=True, result=None)
    good, result = pickle.loads(raw)  # noqa: S301 (our own child wrote it)
    assert good, result
    return Outcome(calls, killed=False, result=result)


def _be_child(
    names: Sequence[str], work: Callable[[], object], channel: socket.socket, writer: int
) -> None:
    answer: tuple[bool, object]
    try:
        listener = _listen(names)
        socket.send_fds(channel, [b"f"], [listener])
        os.close(listener)
        answer = True, work()
    except BaseException as error:  # noqa: BLE001 (goes to the parent, whatever it is)
        answer = False, repr(error)
    # Not by write(2), which may be watched, and the watcher may refuse it.
    os.writev(writer, [pickle.dumps(answer)])
    os._exit(0)


def _listen(names: Sequence[str]) -> int:
    numbers = [number for name in names for number in _NUMBERS[name]]
    program = [(0x20, 0, 0, 0)]  # load the number of the call
    program += [
        (0x15, len(numbers) - place, 0, number) for place, number in enumerate(numbers)
    ]  # jump to the last instruction if it is one of ours
    program += [(0x06, 0, 0, _ALLOW), (0x06, 0, 0, _NOTIFY)]
    memory = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    filters = struct.pack("HxxxxxxP", len(program), ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    listener: int = libc.syscall(_SECCOMP, _SET_FILTER, _NEW_LISTENER, filters)
    assert listener >= 0, os.strerror(ctypes.get_errno())
    return listener


def _watch(
    listener: int, names: Sequence[str], decide: Callable[[Call], int | None], child: int
) -> list[Call]:
    name_of = {number: name for name in names for number in _NUMBERS[name]}
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
        calls.append(Call(len(calls) + 1, name_of[number], thread, tuple(arguments)))
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
