"""Counts the failures of one piece of work, and sends notifications.

Rules:

- One message for a streak of failures, and one when it is over, if the first was delivered.
- A message is recorded after it was sent: a crash in between sends it twice, and loses none.
- While the disk is full or fails, runs cannot be counted, and each failed one sends a message.
- A notification never changes how a run ends.
"""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Meta

from huai_program.notify.notification import Failure, Notification, Subject
from huai_program.notify.settings import Notify
from huai_program.record_file import RecordFile
from huai_schema.errors import ExitCode, HuaiError

_Number = Annotated[int, Meta(ge=0, lt=1 << 62)]


class Streak(NamedTuple):
    """A streak of failures, in a small file that exists during the streak.

    A run under a lock counts as failed from its beginning until it has ended well, so a killed one
    is counted.  A torn file counts as missing, which makes a notification late, or repeats it.  For
    the same reason it is not synced to the disk until a notification was sent.
    """

    failed: _Number = 0
    since: _Number = 0
    """The time of the first failure, seconds since the epoch."""
    reported: bool = False
    """True if the failure was reported, and not yet the recovery."""
    running: bool = False
    """True from the beginning of a run under a lock until its end."""

    def longer(self, now: int, *, running: bool = False) -> "Streak":
        """Return the streak with one more failure at `now`, in seconds since the epoch."""
        since = self.since if self.failed else now
        return Streak(self.failed + 1, since, self.reported, running)


_FILE = RecordFile(Streak, needed=False)
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


def load(path: Path) -> Streak:
    """Return the streak; an empty one if the file is missing or unreadable."""
    return _FILE.load(path) or Streak()


def save(path: Path, streak: Streak) -> bool:
    """Replace the file, or delete it for an empty streak; return False if the disk cannot.

    Other errors, such as a missing folder, are ignored.
    """
    try:
        if streak == Streak():
            path.unlink(missing_ok=True)
        else:
            _FILE.save(path, streak, durable=streak.reported)
    except OSError as error:
        return error.errno not in _DISK_ERRORS
    return True


Code = TypeVar("Code", bound=int)
_CRASHED = 1
"""The exit code of Python after an unexpected error."""
_KILLED = Failure(128 + 9, "each run was killed before it ended", "look for the OOM killer: dmesg")


def this_host() -> str:
    """Return the name of this machine, without asking a name server."""
    return os.uname().nodename


class Notifier:
    """A counter of the failures of one piece of work."""

    def __init__(
        self, notify: Notify, path: Path, about: Subject, warn: Callable[[str], None]
    ) -> None:
        """Count in the file `path`; `warn` gets the reason of a message that was not delivered."""
        self._notify = notify
        self._path = path
        self._about = about
        self._warn = warn

    def run_locked(self, work: Callable[[], Code], reason: Callable[[], str]) -> Code:
        """Do `work` under the caller's lock, count its failure or success, and notify if due.

        Earlier runs that were killed are counted, too.  Returns the exit code of `work`, or raises
        its error.  `reason` returns the reason of a code other than 0.
        """
        before = load(self._path)
        if before.running and self._is_due(before):
            before = self._report(before, _KILLED)
        save(self._path, before.longer(_now(), running=True))
        return self._run(before, work, reason)

    def run_unlocked(self, work: Callable[[], Code], reason: Callable[[], str]) -> Code:
        """Do `work` as `run_locked` does, without a lock: only runs that end are counted."""
        return self._run(None, work, reason)

    def count_failed_start(self, error: HuaiError) -> None:
        """Count a run that could not begin, and notify if that is due."""
        failure = Failure(int(error.exit_code), error.message, error.hint)
        self._count_failure(load(self._path), failure)

    def _run(
        self, before: Streak | None, work: Callable[[], Code], reason: Callable[[], str]
    ) -> Code:
        """Do `work`, count how it ends, and notify if due; not after a signal or `LockedError`.

        `before` is the streak before a run under a lock, else None.
        """
        try:
            code = work()
        except Exception as error:
            if isinstance(error, HuaiError) and error.exit_code == ExitCode.LOCKED:
                raise
            self._count_failure(self._before(before), _failure_of(error))
            raise
        except BaseException:  # an interruption is not a failure
            if before is not None:
                save(self._path, before)
            raise
        if code:
            self._count_failure(self._before(before), Failure(int(code), reason()))
        else:
            self._count_success(self._before(before))
        return code

    def _before(self, before: Streak | None) -> Streak:
        """Return the streak before the run; without a lock that is the recorded one."""
        return load(self._path) if before is None else before

    def _count_failure(self, before: Streak, failure: Failure) -> None:
        """Save the streak `before` with one more failure, and send a notification if it is due."""
        streak = before.longer(_now())
        if self._is_due(streak) or not (save(self._path, streak) or streak.reported):
            save(self._path, self._report(streak, failure))

    def _count_success(self, before: Streak) -> None:
        """End the streak of failures; if it was reported, send a message of the recovery."""
        if before.reported and not self._send(before, None):
            save(self._path, before._replace(running=False))  # the next run sends it
        else:
            save(self._path, Streak())

    def _is_due(self, streak: Streak) -> bool:
        """True if there are `after` failures in a row, as configured, and none was reported."""
        return streak.failed >= self._notify.after and not streak.reported

    def _report(self, streak: Streak, failure: Failure) -> Streak:
        """Send a notification; return the streak, marked as reported if it was delivered."""
        return streak._replace(reported=self._send(streak, failure))

    def _send(self, streak: Streak, failure: Failure | None) -> bool:
        """Send a notification of a failure, or of a recovery; return True if it was delivered."""
        from huai_program.notify.send import notify_all

        notification = Notification(self._about, streak.failed, streak.since, failure)
        return notify_all(self._notify, notification, self._warn)


def _failure_of(error: Exception) -> Failure:
    """Return the failure for an error; an unexpected one has exit code 1."""
    if isinstance(error, HuaiError):
        return Failure(int(error.exit_code), error.message, error.hint)
    return Failure(_CRASHED, f"{type(error).__name__}: {error}")


def _now() -> int:
    return int(time.time())
