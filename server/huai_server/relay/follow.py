"""Relaying of each commit that huai-client applies, within a second, while `serve` runs.

Checks one file of each relayed module twice a second, which works on network file systems too.
Relays an earlier commit when it starts.  A failure is logged once and tried again.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_program.locking import LockedError
from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, config_path, load
from huai_server.relay.hand_over import downstream_of
from huai_server.state.errors import storage_error
from huai_server.state.file_stamp import FileStamp, file_stamp
from huai_server.state.periodic_thread import PeriodicThread

_LOOK_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a failed attempt is repeated."""
_log = logging.getLogger(__name__)

HandOver = Callable[[str], Iterable[HuaiError]]
"""Relays the applied commit of a module, and returns the failures of the updates after it."""


class _Attempt(NamedTuple):
    """The last attempt to relay a module, for the applied commit with `stamp`."""

    stamp: FileStamp
    failure: str = ""
    pause: float = 0.0
    """Seconds from a failure to the next attempt; 0 after a success."""
    retry_at: float = math.inf
    """The time of the next attempt after a failure (monotonic clock)."""


class Follower(PeriodicThread):
    """A thread that relays the modules of one state root."""

    def __init__(self, root: Path, hand_over: HandOver) -> None:
        super().__init__("relay", _LOOK_SECONDS)
        self._root = root
        self._hand_over = hand_over
        self._config: tuple[FileStamp, ServerConfig] = ((), ServerConfig())
        self._attempts: dict[str, _Attempt] = {}

    def look(self) -> None:
        """Relay modules with a newly applied commit, and the one whose retry is longest due.

        Only one: a failure may take a minute, which delays the commits of other modules.
        """
        modules = self._read_config().modules
        relayed = {name: each for name, each in modules.items() if each.relay}
        for name in self._attempts.keys() - relayed.keys():
            del self._attempts[name]
        stamps = {
            name: file_stamp(downstream_of(name, module).record) for name, module in relayed.items()
        }
        attempts = self._attempts
        due = [
            each
            for each in stamps
            if (last := attempts.get(each)) is None or last.stamp != stamps[each]
        ]
        failed = min(attempts.keys() - due, key=lambda each: attempts[each].retry_at, default=None)
        if failed is not None and attempts[failed].retry_at <= time.monotonic():
            due.append(failed)
        for name in due:
            if not self.is_stopping:
                attempts[name] = self._relay(name, stamps[name], attempts.get(name))

    def _relay(self, name: str, stamp: FileStamp, last: _Attempt | None) -> _Attempt:
        """Relay the applied commit; return the attempt, with the time of the next one if it failed.

        A failure is logged if it is new; a held lock is not logged.
        """
        try:
            for failure in self._hand_over(name):
                raise failure
        except LockedError:
            return _Attempt(
                stamp, last.failure if last else "", _FIRST_PAUSE, _retry_time(_FIRST_PAUSE)
            )
        except (HuaiError, OSError) as failed:
            error = failed if isinstance(failed, HuaiError) else storage_error(self._root, failed)
            if last is None or last.failure != error.message:
                _log.warning("%s: not relayed: %s (%s)", name, error.message, error.hint)
            pause = min(2 * last.pause, _LONGEST_PAUSE) if last and last.pause else _FIRST_PAUSE
            return _Attempt(stamp, error.message, pause, _retry_time(pause))
        return _Attempt(stamp)

    def _read_config(self) -> ServerConfig:
        """Return the configuration, or the former one if the file has an error.

        After a change of the file, forget all attempts, so that each module is tried again.
        """
        stamp = file_stamp(config_path(self._root))
        if stamp != self._config[0]:
            try:
                self._config = stamp, load(self._root)
            except HuaiError:  # `serve` reports it
                self._config = stamp, self._config[1]
            self._attempts.clear()
        return self._config[1]


def _retry_time(pause: float) -> float:
    return time.monotonic() + pause
