"""The state of a downstream tree: the commits that it was brought to.

Written as a whole, durably, before the first change to the tree and after the last one.  Private:
other programs read the file `applied`.  Until a sync has written that, a relay reads `version`,
`applied` and `partial` of this one (`huai_server.relay.applied`).
"""

import json
import re
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from huai_program.disk_hints import DISK_HINTS
from huai_program.durable import replace_file
from huai_schema.errors import ExitCode, HuaiError

_VERSION = 1
_COMMIT = re.compile("[0-9a-f]{40}")
_IDENTITY = re.compile("([0-9a-f]{32})?")
_NUMBERS = range(1 << 63)

HELD = "held since an undo: `huai-client sync --unhold` goes on to the newest commit"


class StateError(HuaiError):
    """The state of a module cannot be read or written."""

    exit_code = ExitCode.FILE_IO


class NotSyncedError(HuaiError):
    """There is no applied commit."""

    exit_code = ExitCode.DIFFERS


@dataclass(frozen=True, slots=True)
class State:
    """The state of one module."""

    applied: str | None = None
    """Hex id of the applied commit; None before the first sync ended."""
    serial: int = 0
    """The highest serial that was accepted."""
    attempted: tuple[str, ...] = ()
    """Commits that interrupted runs were bringing the tree to; empty: there was none since."""
    time: int = 0
    """When the last sync ended well, seconds since the epoch."""
    total_bytes: int = 0
    """Of all files of the applied commit that its filter lets through."""
    committed: int = 0
    """When the upstream made the applied commit, seconds since the epoch; 0: not known."""
    entries: int = 0
    """How many entries of the applied commit its filter lets through; 0: there is none."""
    filter: str = ""
    """The settings by which the commit was applied (`tree_settings`)."""
    before: str = ""
    """The commit that was applied before, if the trash was kept since; empty: no undo."""
    before_filter: str = ""
    """The settings by which that was."""
    held: str = ""
    """The commit that was undone: no sync until `sync --unhold`; empty: none."""
    trash: int = 0
    """Since when the oldest batch of the trash is there, seconds since the epoch; 0: none."""
    attempted_filters: tuple[str, ...] = ()
    """The settings of `attempted`, in the same order; a shorter list: not known of the rest."""
    identity: str = ""
    """The identity of the upstream's module (FORMAT.md, "Descriptor"); empty: not known."""
    seen: int = 0
    """When the applied commit was first applied, seconds since the epoch; 0: not known."""
    marks: tuple[str, ...] = ()
    """Names at the top of the applied tree (`marks`)."""

    valid_until: int = 0
    """Until when the applied commit's signature holds, seconds since the epoch; 0: it has none."""

    relay_urls: tuple[str, ...] = ()
    """Where the relay that the applied commit came from has the content; empty: from no relay."""
    partial: str | None = None
    """What is left out of the applied commit, in words; empty: nothing; None: not known."""

    device: int = 0
    """The device of DEST, on which names that differ by case are different; 0: not known."""

    def first_seen(self, commit: str, now: float) -> int:
        """When a commit that is applied `now` was first applied, seconds since the epoch."""
        return (self.seen or self.time or int(now)) if commit == self.applied else int(now)

    @property
    def applied_serial(self) -> int:
        """The serial of the applied commit; 0 before the first sync ended, whatever it accepted."""
        return self.serial if self.applied else 0

    @property
    def attempts(self) -> tuple[tuple[str, str], ...]:
        """Each attempted commit with its settings."""
        return tuple(zip_longest(self.attempted, self.attempted_filters, fillvalue=""))

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of the applied commit, and those of each attempted one."""
        return (self.filter, *(settings for _, settings in self.attempts))

    def __post_init__(self) -> None:
        """Raise `ValueError` for values that huai does not write."""
        numbers: tuple[object, ...] = (
            self.serial,
            self.time,
            self.total_bytes,
            self.committed,
            self.entries,
            self.trash,
            self.seen,
            self.valid_until,
            self.device,
        )
        if not all(isinstance(number, int) and number in _NUMBERS for number in numbers):
            raise ValueError("not a number, or out of range")
        identity: object = self.identity
        partial: object = self.partial
        if not (partial is None or isinstance(partial, str)):
            raise ValueError("not a reason")
        if not isinstance(identity, str) or not _IDENTITY.fullmatch(identity):
            raise ValueError("not an identity")
        filters: tuple[object, ...] = (
            self.filter,
            self.before_filter,
            *self.attempted_filters,
            *self.marks,
            *self.relay_urls,
        )
        if not all(isinstance(text, str) for text in filters):
            raise ValueError("not a list of rules")
        named: list[object] = [] if self.applied is None else [self.applied]
        named += [each for each in (self.before, self.held) if each]
        for commit in (*self.attempted, *named):
            if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
                raise ValueError(f"{str(commit)[:60]!r} is not a commit id")


def applied_id(state: State, name: str) -> str:
    """The commit that the tree was brought to; `NotSyncedError` if there is none."""
    if state.applied is None:
        raise NotSyncedError(
            f"{name}: was never synced to its end", hint="run huai-client sync first"
        )
    return state.applied


def load(path: Path) -> State:
    """Read the state; a missing file is the state before the first sync."""
    try:
        values = json.loads(path.read_bytes())
        if values.pop("version") != _VERSION:
            raise ValueError("another version")
        filters = tuple(values.get("attempted_filters", ()))
        attempted = tuple(values["attempted"])
        marks = tuple(values.get("marks", ()))
        lists = {
            "attempted": attempted,
            "attempted_filters": filters,
            "marks": marks,
            "relay_urls": tuple(values.get("relay_urls", ())),
        }
        return State(**{**values, **lists})
    except FileNotFoundError:
        return State()
    except OSError as error:
        raise StateError(
            f"{path}: {error.strerror}", hint="run as the user that the state belongs to"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(
            f"{path}: not a state file of this program ({error})",
            hint="move it away: the next sync then compares the whole tree with the metadata",
        ) from error


def save(path: Path, state: State) -> None:
    """Replace the state in one durable step."""
    replace_durably(path, json.dumps({"version": _VERSION, **asdict(state)}, indent=1).encode())


def replace_durably(path: Path, data: bytes) -> None:
    """Replace a file as a whole: a crash leaves the old one or the new one."""
    try:
        replace_file(path, data, path.with_suffix(".new"))
    except OSError as error:
        raise StateError(
            f"{path}: {error.strerror}",
            hint=DISK_HINTS.get(error.errno or 0, "check the owner of the folder; then run again"),
        ) from error
