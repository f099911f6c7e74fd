"""Runs a program that may watch only two directories.

    python -m tests.support.few_watches PROGRAM ARGUMENT…

In place of a low `fs.inotify.max_user_watches`: that is a setting of the whole machine or of a user
namespace, which containers refuse to make.
"""

import ctypes
import errno
import os
import signal
import sys
from typing import Final, NoReturn

from tests.support.system_calls import Call, supervise

_ALLOWED: Final = 2
_SET_PARENT_DEATH_SIGNAL: Final = 1


class _Limit:
    """Allows the first watches and refuses all others."""

    def __init__(self) -> None:
        self._watches = 0

    def __call__(self, call: Call) -> int | None:
        """For `supervise`."""
        if call.name != "watch":
            return None
        self._watches += 1
        return errno.ENOSPC if self._watches > _ALLOWED else None


def _run() -> NoReturn:
    # The test kills the supervisor only.
    assert ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0) == 0
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 (the command line of the test)


if __name__ == "__main__":
    # A rename ends each record of the watcher: the supervisor gives up on a child without calls.
    supervise(("watch", "rename", "handle"), _run, _Limit())
