"""Hands on, as long as `serve` runs, what huai-client applies, within a second of each sync.

Looks at one file of each relayed module twice a second, which works on network file systems too.
When it starts, it hands on what was applied before.  What fails is told once, and tried again.
"""

import logging
import time
from collections.abc import Callable
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
"""Seconds before something that failed is tried again."""
_log = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """How a module stood when it was last handed on, or that failed."""

    stamp: FileStamp
    failure: str = ""
    pause: float = 0.0
    again: float = 0.0
    """When it is tried again (monotonic clock); no matter if it did not fail."""


class Follower(PeriodicThread):
    """The relayed modules of one state root."""

    def __init__(self, root: Path, hand_over: Callable[[str], object]) -> None:
        """`hand_over` brings a module to what was applied, or raises a `HuaiError`."""
        super().__init__("relay", _LOOK_SECONDS)
        self._root = root
        self._hand_over = hand_over
        self._config: tuple[FileStamp, ServerConfig] = ((), ServerConfig())
        self._seen: dict[str, _Seen] = {}

    def look(self) -> None:
        """Hand on what is new; what fails is logged."""
        modules = self._read_config().modules
        relayed = {name: each for name, each in modules.items() if each.relay}
        for name in self._seen.keys() - relayed.keys():
            del self._seen[name]
        for name, module in relayed.items():
            stamp = file_stamp(downstream_of(name, module).record)
            seen = self._seen.get(name)
            if self.is_stopping or (seen and not _is_due(seen, stamp)):
                continue
            self._seen[name] = self._one(name, stamp, seen)

    def _one(self, name: str, stamp: FileStamp, seen: _Seen | None) -> _Seen:
        try:
            self._hand_over(name)
        except LockedError:
            return _Seen(stamp, seen.failure if seen else "", _FIRST_PAUSE, _later(_FIRST_PAUSE))
        except (HuaiError, OSError) as failed:
            error = failed if isinstance(failed, HuaiError) else storage_error(self._root, failed)
            if seen is None or seen.failure != error.message:
                _log.warning("%s: not handed on: %s (%s)", name, error.message, error.hint)
            pause = min(2 * seen.pause, _LONGEST_PAUSE) if seen and seen.pause else _FIRST_PAUSE
            return _Seen(stamp, error.message, pause, _later(pause))
        return _Seen(stamp)

    def _read_config(self) -> ServerConfig:
        stamp = file_stamp(config_path(self._root))
        if stamp != self._config[0]:
            try:
                self._config = stamp, load(self._root)
            except HuaiError:  # `serve` tells of it
                self._config = stamp, self._config[1]
            self._seen.clear()
        return self._config[1]


def _is_due(seen: _Seen, stamp: FileStamp) -> bool:
    return stamp != seen.stamp or (seen.pause > 0 and time.monotonic() >= seen.again)


def _later(pause: float) -> float:
    return time.monotonic() + pause
