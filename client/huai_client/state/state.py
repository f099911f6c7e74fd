"""The state of a downstream tree: the commits that it was brought to; its lock.

Written as a whole, durably, before the first change to the tree and after the last one.  Private:
other programs read the file `applied`.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from huai_client.state.paths import ModulePlaces
from huai_program.disk_hints import DISK_HINTS
from huai_program.durable import replace_file
from huai_program.locking import locked
from huai_schema.errors import ExitCode, HuaiError

_VERSION = 1
_Commit = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
_CommitOrNone = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?$")]
_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]

HELD = "held since an undo: `huai-client sync --unhold` goes on to the newest commit"


class StateError(HuaiError):
    """The state of a module cannot be read or written."""


class NotSyncedError(HuaiError):
    """No commit is applied yet."""

    exit_code = ExitCode.DIFFERS


class State(Struct, frozen=True):
    """The state of one module; the names of the values are keys of the file."""

    applied: _Commit | None = None
    """The hex id of the applied commit; None before the end of the first sync."""
    serial: _Number = 0
    """The highest serial that was accepted."""
    attempted: tuple[_Commit, ...] = ()
    """The commits that runs interrupted since were bringing the tree to."""
    time: _Number = 0
    """The end of the last successful sync, seconds since the epoch."""
    total_bytes: _Number = 0
    """The bytes of all files of the applied commit that its filter includes."""
    committed: _Number = 0
    """The time of the applied commit, seconds since the epoch; 0 if unknown."""
    entries: _Number = 0
    """The number of entries of the applied commit that its filter includes."""
    filter: str = ""
    """The settings with which the commit was applied (`tree_settings`)."""
    before: _CommitOrNone = ""
    """The commit applied before, if the trash since was kept; empty without an undo."""
    before_filter: str = ""
    """The settings with which that one was applied."""
    held: _CommitOrNone = ""  # prose: a key of the file
    """The undone commit, which stops syncs until `sync --unhold`, or empty."""
    trash: _Number = 0
    """The time of the oldest batch of the trash, seconds since the epoch; 0 if it is empty."""
    attempted_filters: tuple[str, ...] = ()
    """The settings of `attempted`, in the same order; unknown for the rest if it is shorter.

    They are more than filters; the name is a key of the file."""
    identity: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{32})?$")] = ""
    """The identity of the upstream's module (FORMAT.md, "Descriptor"), or empty."""
    seen: _Number = 0  # prose: a key of the file
    """The time at which the applied commit was first applied, seconds since the epoch, or 0."""
    marks: tuple[str, ...] = ()
    """Names at the top of the applied tree (`marks`)."""

    valid_until: _Number = 0
    """The end of the applied commit's signature, seconds since the epoch; 0 without one."""

    relay_urls: tuple[str, ...] = ()
    """The content URLs of the relay that the applied commit came from, if it was one."""
    partial: str | None = None
    """The part left out of the applied commit, in words, or empty; None if unknown."""

    device: _Number = 0
    """The device of DEST, on which names that differ by case are different; 0 if unknown."""

    def first_seen(self, commit: str, now: float) -> int:
        """Return when a commit that is applied `now` was first applied, seconds since the epoch."""
        return (self.seen or self.time or int(now)) if commit == self.applied else int(now)

    @property
    def applied_serial(self) -> int:
        """The serial of the applied commit; 0 before the end of the first sync."""
        return self.serial if self.applied else 0

    @property
    def attempts(self) -> tuple[tuple[str, str], ...]:
        """Each attempted commit with its settings."""
        return tuple(zip_longest(self.attempted, self.attempted_filters, fillvalue=""))

    def with_attempts(self, *attempts: tuple[str, str]) -> "State":
        """Return the state with these attempted commits, each with its settings."""
        commits = tuple(commit for commit, _ in attempts)
        return replace(self, attempted=commits, attempted_filters=tuple(key for _, key in attempts))

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of the applied commit, and those of each attempted one."""
        return (self.filter, *(settings for _, settings in self.attempts))


def applied_id(state: State, name: str) -> str:
    """Return the id of the applied commit; raises `NotSyncedError`, with `name`, without one."""
    if state.applied is None:
        raise NotSyncedError(
            f"{name}: was never synced to its end", hint="run huai-client sync first"
        )
    return state.applied


def read_file(path: Path, most: int = -1) -> bytes | None:
    """Return the content of a file, or its first `most` bytes; None if it is missing.

    Raises `StateError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(
            f"{path}: {error.strerror}", hint="run as the user that the state belongs to"
        ) from error


def load(path: Path) -> State:
    """Read the state; a missing file is the state before the first sync.

    Raises `StateError` if the file cannot be read, is damaged or of another version.
    """
    data = read_file(path)
    if data is None:
        return State()
    try:
        # Not by msgspec: names that are not UTF-8 have surrogates.
        values = msgspec.convert(json.loads(data), dict[str, object])
        if values.pop("version", None) != _VERSION or values.keys() - set(State.__struct_fields__):
            raise ValueError("another version")
        return msgspec.convert(values, State)
    except (ValueError, RecursionError) as error:
        raise StateError(
            f"{path}: not a state file of this program ({error})",
            hint="move it away: the next sync then compares the whole tree with the metadata",
        ) from error


def save(path: Path, state: State) -> None:
    """Replace the state in one durable step; raises `StateError` if it cannot be written."""
    replace_durably(path, json.dumps({"version": _VERSION, **asdict(state)}, indent=1).encode())


def replace_durably(path: Path, data: bytes) -> None:
    """Replace a file as a whole: a crash leaves the old or the new one.

    Raises `StateError` if it cannot be written.
    """
    try:
        replace_file(path, data, path.with_suffix(".new"))
    except OSError as error:
        raise StateError(
            f"{path}: {error.strerror}",
            hint=DISK_HINTS.get(error.errno or 0, "check the owner of the folder; then run again"),
        ) from error


def _hint(error: OSError) -> str:
    """Return the hint for a file of the state that cannot be made or locked."""
    if hint := DISK_HINTS.get(error.errno or 0):
        return hint
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
        return "move away what is in the place of huai's state, or give another --root"
    return "run as the user that the state belongs to, or give another --root"


@contextmanager
def module_lock(places: ModulePlaces, *, wait: float, verifying: bool = False) -> Iterator[None]:
    """Hold the lock of a module within the block; make the module's folder if it is missing.

    Raises `LockedError` if the lock is not free after `wait` seconds, `StateError` if the folder
    cannot be made.  With `verifying` it is the separate lock of `verify`, with which the tree may
    still be changed.
    """
    lock = locked(places.verifying if verifying else places.lock, wait=wait)
    try:
        places.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        places.folder.mkdir(mode=0o700, exist_ok=True)
        lock.__enter__()
    except OSError as error:
        where = os.fsdecode(error.filename or places.folder)
        raise StateError(f"{where}: {error.strerror}", hint=_hint(error)) from error
    with ExitStack() as stack:
        stack.push(lock.__exit__)
        yield
