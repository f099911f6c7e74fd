"""Which modes a tree gets: the ones that the metadata states, or what a policy makes of them.

Pure.  Rule to keep: only the table of a policy says which mode is not the stated one, and
everything that plans, publishes or compares asks a `Selection`, which applies it.  So nothing is
set that is found different later.
"""

from enum import StrEnum
from typing import NamedTuple, TypeVar

from huai_schema.entries import DIRECTORY_MODE, FILE_MODE, Directory, Entry, File, Symlink
from huai_schema.errors import ExitCode, HuaiError

_SET_ID = 0o6000
_SET_UID = 0o4000
_FOR_OTHERS = 0o002
_PERMISSIONS = 0o777
_ALL = 0o7777
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


class ModeRule(NamedTuple):
    """Which mode is made of a stated one."""

    kept: int
    """Bits that stay as they are stated."""
    set: int = 0
    """Bits that are always there."""


class ModeTable(NamedTuple):
    """What a policy does."""

    file: ModeRule
    directory: ModeRule
    local: bool = False
    """What is there keeps its own."""


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

    @property
    def table(self) -> ModeTable:
        """What it does, as the engine takes it."""
        return _TABLES[self]

    def of(self, entry: Entry) -> Entry:
        """`entry` as a tree gets it."""
        if isinstance(entry, Symlink):
            return entry
        if isinstance(entry, File):
            return self._of_real(entry, self.table.file)
        return self.of_directory(entry)

    def of_directory(self, entry: Directory) -> Directory:
        """The same of a directory."""
        return self._of_real(entry, self.table.directory)

    def _of_real(self, entry: _Real, rule: ModeRule) -> _Real:
        mode = entry.mode & rule.kept | rule.set
        if self.table.local:
            return entry._replace(mode=Kept(mode))
        if mode == entry.mode:
            return entry
        return entry._replace(mode=mode if rule.set else Reduced.of(mode, entry.mode))

    def hides(self, other: "Modes") -> bool:
        """Whether a tree made by this policy may differ from `other` where entries are equal."""
        return self is Modes.LOCAL and other is not Modes.LOCAL


_TABLES = {
    # A sticky directory too: what everybody may put into a mirror, the mirror hands out.
    Modes.SAFE: ModeTable(
        ModeRule(_ALL & ~(_SET_ID | _FOR_OTHERS)), ModeRule(_ALL & ~(_SET_UID | _FOR_OTHERS))
    ),
    Modes.EXACT: ModeTable(ModeRule(_ALL), ModeRule(_ALL)),
    Modes.PLAIN: ModeTable(ModeRule(0, FILE_MODE), ModeRule(0, DIRECTORY_MODE)),
    Modes.LOCAL: ModeTable(ModeRule(_PERMISSIONS), ModeRule(_PERMISSIONS), local=True),
}


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
