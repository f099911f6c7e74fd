"""Counts the failures of one piece of work, and has somebody told of them.

Rules:

- One message for a streak of failures, and one when it is over, if somebody was told of the streak.
- What is told is written down after it was told: a crash between the two tells it twice, and none
  is lost.
- Nothing here changes how a run ends.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from huai_program.notify.notification import Failure, Notification, Subject
from huai_program.notify.settings import Notify
from huai_program.notify.streak import Streak, load, save
from huai_schema.errors import ExitCode, HuaiError

Code = TypeVar("Code", bound=int)
"""An exit code."""
_CRASHED = 1
"""How Python ends after an error that nobody expected."""
_KILLED = Failure(128 + 9, "each run was killed before it ended", "look for the OOM killer: dmesg")


def this_host() -> str:
    """The name of this machine; asks no name server."""
    return os.uname().nodename


class Notifier:
    """What has to be told of the runs of one piece of work."""

    def __init__(
        self, notify: Notify, path: Path, about: Subject, warn: Callable[[str], None]
    ) -> None:
        """`path` is the file of the streak, `warn` hears why somebody was not told."""
        self._notify = notify
        self._path = path
        self._about = about
        self._warn = warn

    def locked(self, work: Callable[[], Code], reason: Callable[[], str]) -> Code:
        """Do `work`, for whoever holds a lock: a run that was killed is counted as well.

        `work` returns the exit code, or raises; so does this.  `reason` says why the code is not 0.
        """
        before = load(self._path)
        if before.running and self._is_due(before):
            before = self._told(before, _KILLED)
        save(self._path, before.longer(_now(), running=True))
        return self._done(before, work, reason)

    def counted(self, work: Callable[[], Code], reason: Callable[[], str]) -> Code:
        """The same without a lock: only runs that end are counted."""
        return self._done(None, work, reason)

    def failed(self, error: HuaiError) -> None:
        """Count a run that could not begin."""
        failure = Failure(int(error.exit_code), error.message, error.hint)
        self._failed(load(self._path), failure)

    def _done(
        self, before: Streak | None, work: Callable[[], Code], reason: Callable[[], str]
    ) -> Code:
        try:
            code = work()
        except Exception as error:
            if isinstance(error, HuaiError) and error.exit_code == ExitCode.LOCKED:
                raise
            self._failed(self._before(before), _failure_of(error))
            raise
        except BaseException:  # somebody ended it: that is no failure
            if before is not None:
                save(self._path, before)
            raise
        if code:
            self._failed(self._before(before), Failure(int(code), reason()))
        else:
            self._ended_well(self._before(before))
        return code

    def _before(self, before: Streak | None) -> Streak:
        return load(self._path) if before is None else before

    def _failed(self, before: Streak, failure: Failure) -> None:
        streak = before.longer(_now())
        save(self._path, self._told(streak, failure) if self._is_due(streak) else streak)

    def _ended_well(self, before: Streak) -> None:
        if before.told and not self._send(before, None):
            save(self._path, before._replace(running=False))  # told by the next one
        else:
            save(self._path, Streak())

    def _is_due(self, streak: Streak) -> bool:
        return streak.failed >= self._notify.after and not streak.told

    def _told(self, streak: Streak, failure: Failure) -> Streak:
        return streak._replace(told=self._send(streak, failure))

    def _send(self, streak: Streak, failure: Failure | None) -> bool:
        """Whether anybody was told."""
        from huai_program.notify.send import tell

        told = Notification(self._about, streak.failed, streak.since, failure)
        return tell(self._notify, told, self._warn)


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, HuaiError):
        return Failure(int(error.exit_code), error.message, error.hint)
    return Failure(_CRASHED, f"{type(error).__name__}: {error}")


def _now() -> int:
    return int(time.time())
