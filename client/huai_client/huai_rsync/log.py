"""rsync's log formats, and the file of `--log-file`.

Source: rsyncd.conf(5), "log format", and rsync's log.c.  A format with an escape that is not in
`_ESCAPES` needs the real rsync.  ftpsync and other scripts read the statistics in the file.  Rules
to keep: the file is the same with and without `--quiet`; this module imports little, because every
poll loads it.
"""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from huai_client.cli.logfile import append
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_schema.paths import RelPath

ITEMIZED: Final = "%i %n%L"
"""The format of `-i`, and the default of `--log-file-format`."""
NAMED: Final = "%n%L"
"""The format of `-v`."""
_ESCAPE = re.compile("%(.?)", re.DOTALL)
_MODE = 0o666
_TIME = "%Y/%m/%d-%H:%M:%S"


class Item(NamedTuple):
    """A change to the tree, as rsync reports it."""

    itemized: bytes
    """The eleven characters of rsync(1), "--itemize-changes"."""
    name: bytes
    """The printable name; a directory's ends with a slash."""
    tail: bytes = b""
    """` -> TARGET` of a symlink, ` => NAME` of a hardlink."""
    brief: bool = True
    """True if formats without `%i` report it too: not if only mode or owner change."""
    size: int = 0
    mtime: int = 0
    """Nanoseconds since the epoch."""

    @property
    def deleted(self) -> bool:
        """True if the path was deleted."""
        return self.itemized.startswith(b"*")


_ESCAPES: Final[dict[str, Callable[[Item], bytes]]] = {
    "i": lambda item: item.itemized,
    "n": lambda item: item.name,
    "f": lambda item: item.name.rstrip(b"/"),
    "L": lambda item: item.tail,
    "l": lambda item: b"%d" % item.size,
    "o": lambda item: b"del." if item.deleted else b"recv",
    "M": lambda item: time.strftime(_TIME, time.localtime(item.mtime // 10**9)).encode(),
    "%": lambda _: b"%",
}


@dataclass(frozen=True)
class Format:
    """A format, from a text without an `unknown_escape`."""

    text: str

    @cached_property
    def _letters(self) -> set[str]:
        return set(_ESCAPE.findall(self.text))

    def line(self, item: Item) -> bytes | None:
        """Return the line for `item`, without a newline; None if the format does not report it."""
        if item.deleted and self._letters.isdisjoint("io"):
            return b"deleting " + item.name
        if not (item.itemized if "i" in self._letters else item.brief):
            return None
        texts = _ESCAPE.split(self.text)
        parts = (
            _ESCAPES[text](item) if number % 2 else os.fsencode(text)
            for number, text in enumerate(texts)
        )
        return b"".join(parts)


def unknown_escape(text: str) -> str:
    """Return the first escape in a format that huai does not support, or an empty text."""
    unknown = (letter for letter in _ESCAPE.findall(text) if letter not in _ESCAPES)
    return next((f"%{letter}" for letter in unknown), "")


class PlanStep(NamedTuple):
    """A step of a plan, as the executor names it."""

    kind: str
    path: RelPath


Items: TypeAlias = dict[PlanStep, list[Item]]
"""rsync's lines for each step, in the order of the plan."""


@dataclass(frozen=True, slots=True)
class RsyncLog:
    """The file of `--log-file`, to which lines are appended as rsync does."""

    path: Path

    @classmethod
    def opened(cls, name: str) -> "RsyncLog":
        """Open or make the file; raises `RsyncNeededError` if it cannot be written."""
        log = cls(Path(name).absolute())
        try:
            append(log.path, b"", _MODE)
        except OSError as error:
            raise RsyncNeededError(f"--log-file: {name}: {error.strerror}") from error
        return log

    def write(self, line: bytes) -> None:
        """Append a line with the time; if that fails, it is lost, and the sync continues."""
        stamp = time.strftime("%Y/%m/%d %H:%M:%S")
        try:
            append(self.path, b"%b [%d] %b\n" % (stamp.encode(), os.getpid(), line), _MODE)
        except OSError:
            return
