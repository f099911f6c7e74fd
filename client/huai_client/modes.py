"""Which modes a tree gets: the ones that the metadata states, or what a policy makes of them.

Pure.  Rule to keep: only `Modes.of` makes a mode that is not the stated one, and everything that
plans, publishes or compares asks a `Selection`, which has called it.  So nothing is set that is
found different later.
"""

from enum import StrEnum
from typing import TypeVar

from huai_schema.entries import DIRECTORY_MODE, FILE_MODE, Directory, Entry, File, Symlink
from huai_schema.errors import ExitCode, HuaiError

_SET_ID = 0o6000
_SET_UID = 0o4000
_FOR_OTHERS = 0o002
_PERMISSIONS = 0o777
_LINE = "modes "
"""Begins the line of a policy; no rule of rsync's begins so."""

_Real = TypeVar("_Real", File, Directory)


class UnknownModesError(HuaiError):
    """A policy of another version."""

    exit_code = ExitCode.CONFIG


class Reduced(int):
    """A mode that lacks bits which the metadata states."""

    stated: int
    """What the metadata states."""

    @classmethod
    def of(cls, mode: int, stated: int) -> "Reduced":
        """`mode` instead of `stated`."""
        made = cls(mode)
        made.stated = stated
        return made


class Kept(int):
    """A mode for what is made anew, less the umask; what is there already keeps its own."""


class Modes(StrEnum):
    """What is done about modes: the key `modes` of client.toml."""

    SAFE = "safe"
    """No set-uid, set-gid for directories alone, and nothing that everybody may write to."""
    EXACT = "exact"
    """As stated."""
    PLAIN = "plain"
    """755 for directories and 644 for files, as rsync's `--chmod=D755,F644`."""
    LOCAL = "local"
    """As rsync without `--perms`: what is there keeps its mode."""

    def of(self, entry: Entry) -> Entry:
        """`entry` as a tree gets it."""
        if self is Modes.EXACT or isinstance(entry, Symlink):
            return entry
        if isinstance(entry, File):
            if self is Modes.PLAIN:
                return entry._replace(mode=FILE_MODE)
            return self._of_real(entry, entry.mode & (_SET_ID | _FOR_OTHERS))
        return self.of_directory(entry)

    def of_directory(self, entry: Directory) -> Directory:
        """The same of a directory."""
        if self is Modes.EXACT:
            return entry
        if self is Modes.PLAIN:
            return entry._replace(mode=DIRECTORY_MODE)
        # A sticky directory too: what everybody may put into a mirror, the mirror hands out.
        return self._of_real(entry, entry.mode & (_SET_UID | _FOR_OTHERS))

    def _of_real(self, entry: _Real, unsafe: int) -> _Real:
        if self is Modes.LOCAL:
            return entry._replace(mode=Kept(entry.mode & _PERMISSIONS))
        if not unsafe:
            return entry
        return entry._replace(mode=Reduced.of(entry.mode & ~unsafe, entry.mode))

    def hides(self, other: "Modes") -> bool:
        """Whether a tree made by this policy may differ from `other` where entries are equal."""
        return self is Modes.LOCAL and other is not Modes.LOCAL


def bare_key(modes: Modes) -> str:
    """How a policy is recorded beside a filter (`filters.Rules.key`); empty: as stated."""
    return "" if modes is Modes.EXACT else f"{_LINE}{modes}\n"


def split_key(key: str) -> tuple[Modes, str]:
    """The policy that a recorded filter begins with, and the rest, which are the rules."""
    line, _, rest = key.partition("\n")
    if not line.startswith(_LINE):
        return Modes.EXACT, key
    try:
        return Modes(line.removeprefix(_LINE)), rest
    except ValueError:
        raise UnknownModesError(
            f"the recorded state says {line!r}, which this version does not know",
            hint="run the version that wrote it, or sync with --adopt",
        ) from None
