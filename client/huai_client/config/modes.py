"""The modes of a tree: those that the metadata states, changed by a policy.

Pure.  Rule to keep: only the table of a policy changes a stated mode, and everything that plans,
publishes or compares uses a `Selection`, which applies it.  So no mode is set that a later
comparison reports as different.
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
"""The beginning of a policy's line, which no rule of rsync has."""

_Real = TypeVar("_Real", File, Directory)


class UnknownModesError(HuaiError):
    """The policy is of another version."""

    exit_code = ExitCode.CONFIG


class Reduced(int):
    """A mode without some of the stated bits."""

    stated: int
    """The mode that the metadata states."""

    @classmethod
    def of(cls, mode: int, stated: int) -> "Reduced":
        """Return `mode` in place of `stated`."""
        reduced = cls(mode)
        reduced.stated = stated
        return reduced


class DefaultMode(int):
    """A mode for new entries, less the umask; existing entries keep their own."""


class ModeRule(NamedTuple):
    """A change of a stated mode."""

    mask: int
    """The bits that stay as stated."""
    set: int = 0
    """The bits that are always set."""


class ModeTable(NamedTuple):
    """The rules of a policy."""

    file: ModeRule
    directory: ModeRule
    local: bool = False
    """True if existing entries keep their modes."""


class Modes(StrEnum):
    """A policy for modes: the key `modes` of client.toml."""

    SAFE = "safe"
    """Without set-uid, with set-gid for directories only, and without world-writable modes."""
    EXACT = "exact"
    """As stated."""
    PLAIN = "plain"
    """With 755 for directories and 644 for files, as rsync's `--chmod=D755,F644`."""
    LOCAL = "local"
    """As rsync without `--perms`: existing entries keep their modes."""

    @property
    def table(self) -> ModeTable:
        """The rules, as the engine takes them."""
        return _TABLES[self]

    def of(self, entry: Entry) -> Entry:
        """Return `entry` with the mode of this policy; a symlink unchanged."""
        if isinstance(entry, Symlink):
            return entry
        if isinstance(entry, File):
            return self._of_real(entry, self.table.file)
        return self.of_directory(entry)

    def of_directory(self, entry: Directory) -> Directory:
        """Return a directory with the mode of this policy."""
        return self._of_real(entry, self.table.directory)

    def _of_real(self, entry: _Real, rule: ModeRule) -> _Real:
        """Return the entry with its mode changed by a rule.

        The mode is a `DefaultMode` for `LOCAL`, a `Reduced` if `SAFE` leaves out stated bits.
        """
        mode = entry.mode & rule.mask | rule.set
        if self.table.local:
            return entry._replace(mode=DefaultMode(mode))
        if mode == entry.mode:
            return entry
        return entry._replace(mode=mode if rule.set else Reduced.of(mode, entry.mode))

    def may_differ_from(self, other: "Modes") -> bool:
        """Return True if a tree of this policy may have other modes than `other` sets.

        That is so if this policy left the modes to this machine.
        """
        return self is Modes.LOCAL and other is not Modes.LOCAL


_TABLES = {
    # A sticky directory too: the mirror would serve what any local user puts there.
    Modes.SAFE: ModeTable(
        ModeRule(_ALL & ~(_SET_ID | _FOR_OTHERS)), ModeRule(_ALL & ~(_SET_UID | _FOR_OTHERS))
    ),
    Modes.EXACT: ModeTable(ModeRule(_ALL), ModeRule(_ALL)),
    Modes.PLAIN: ModeTable(ModeRule(0, FILE_MODE), ModeRule(0, DIRECTORY_MODE)),
    Modes.LOCAL: ModeTable(ModeRule(_PERMISSIONS), ModeRule(_PERMISSIONS), local=True),
}


def bare_key(modes: Modes) -> str:
    """Return a policy's line of a recorded filter (`filters.Rules.key`); empty for `EXACT`."""
    return "" if modes is Modes.EXACT else f"{_LINE}{modes}\n"


def split_key(key: str) -> tuple[Modes, str]:
    """Split a recorded filter into its policy for modes and its rules.

    Raises `UnknownModesError` for the policy of another version.
    """
    line, _, rest = key.partition("\n")
    if not line.startswith(_LINE):
        return Modes.EXACT, key
    try:
        return Modes(line.removeprefix(_LINE)), rest
    except ValueError:
        raise UnknownModesError(
            f"the recorded state has {line!r}, which this version does not know",
            hint="run the version that wrote it, or sync with --adopt",
        ) from None
