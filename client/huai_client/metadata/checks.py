"""Checks a commit before a tree is compared with it; each check raises its own error."""

from huai_client.config.load import Module
from huai_client.metadata.commit import Commit
from huai_client.metadata.http import RolledBackError
from huai_client.metadata.newest import Newest
from huai_client.state.state import State
from huai_schema.codec.commits import SERIAL_STEP, Totals
from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import diff
from huai_schema.entries import Directory
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show

_GROWTH = 10
"""A multiple of the applied totals."""
_SMALL_ENTRIES, _SMALL_BYTES = 1_000_000, 1 << 40
"""Sizes to which a module may grow, however small it was."""

_ENTRIES_MAX = 100_000_000
ENTRIES_FREE = 100_000
"""Entries beyond the applied ones that any metadata may announce, however small the pack.

Each further entry needs a byte of metadata: names that count upwards take two or three.  One tree
that is repeated takes no bytes, while each of its entries costs memory, time and an inode.
"""


class WrongModuleError(HuaiError):
    """The repository belongs to another module."""

    exit_code = ExitCode.UNKNOWN_MODULE


class TooLargeError(HuaiError):
    """The upstream announces more than the administrator has agreed to."""

    exit_code = ExitCode.FORMAT


def check_module_name(commit: Commit, name: str) -> None:
    """Raise `WrongModuleError` unless the metadata are of the module `name`."""
    if commit.descriptor.module != name:
        raise WrongModuleError(
            f"the upstream's repository is of module {commit.descriptor.module!r}, not {name!r}",
            hint=f"if that is right, set upstream_name = {commit.descriptor.module!r}",
        )


def check_serial(commit: Commit, state: State) -> None:
    """Raise `RolledBackError` for an older serial, another identity, or a jump of the serial.

    The same serial is valid for a commit that was applied or attempted only.
    """
    if reason := _refusal(commit, state):
        raise _rolled_back(reason)


def check_offer(newest: Newest, state: State) -> None:
    """Raise `RolledBackError` if `check_serial` would refuse a commit by the serial in its head.

    The head is not trusted, but without this each sync would fetch all of an outdated copy.
    """
    if newest.static and (reason := _how_old(newest.static.newest, newest.commit, state)):
        raise _rolled_back(f"{newest.url}: {reason}")


def check_times(commit: Commit, applied: Commit) -> None:
    """Raise `RolledBackError` if a printed list is older than that of the applied commit.

    A list is older if files have earlier times than before, and no entry has a later one.  The time
    of a directory may be that of its newest file, which may have been removed: it does not count.
    """
    earlier = None
    for change in diff(applied.snapshot, commit.snapshot):
        if isinstance(change, Moved) or change.old is None or change.new is None:
            continue
        if change.new.mtime > change.old.mtime:
            return
        if change.new.mtime < change.old.mtime and not isinstance(change.new, Directory):
            earlier = earlier or change.path
    if earlier is not None:
        raise RolledBackError(
            f"the list is older than the last one: the times of {show(earlier)} and others are "
            "earlier, and none is later",
            hint="if the upstream restored older files: --accept-rollback",
        )


def is_rollback(commit: Commit, state: State) -> bool:
    """Return True if `check_serial` would refuse a commit."""
    return bool(_refusal(commit, state))


def _refusal(commit: Commit, state: State) -> str:
    """Return why a commit is refused (older, another module, a jump), or an empty text."""
    serial, identity = commit.info.serial, commit.descriptor.identity
    if reason := _how_old(serial, commit.id, state):
        return reason
    if state.identity and identity != state.identity:
        return (
            f"the upstream's module is not the one that was synced before: its identity is "
            f"{identity or 'missing'}, and {state.identity} was accepted"
        )
    if serial - state.serial > SERIAL_STEP:
        # Each commit of an honest upstream would be refused from then on.
        return f"the upstream's serial jumps from {state.serial} to {serial}"
    return ""


def _how_old(serial: int, commit: str, state: State) -> str:
    """Return why a commit with this serial and id is refused as older, or an empty text."""
    is_accepted = commit == state.applied or commit in state.attempted
    if serial < state.serial or (serial == state.serial and not is_accepted):
        return f"the upstream offers serial {serial}, and {state.serial} was accepted before"
    return ""


def _rolled_back(reason: str) -> RolledBackError:
    return RolledBackError(
        reason,
        hint="its metadata was restored or replaced, or url now names another upstream; "
        "if that is right: --accept-rollback",
    )


def check_totals(commit: Commit, module: Module, applied: Totals | None, packed: int) -> None:
    """Raise `TooLargeError` for a commit that announces more than the limits allow.

    `applied` are the totals of the applied commit; None if nothing is applied, or any growth is
    accepted.  `packed` is the size of all metadata of the module, packed, in bytes.
    """
    totals = commit.info.totals
    for count, unit, most, key in (
        (totals.entries, "entries", module.max_entries or _ENTRIES_MAX, "max_entries"),
        (totals.bytes, "bytes", module.max_bytes, "max_bytes"),
    ):
        if count > most:
            raise TooLargeError(
                f"the upstream announces {count:,} {unit}, more than {key} = {most:,} allows; "
                "nothing was touched",
                hint=f"if that is right, raise {key} in client.toml",
            )
    applied_entries = applied.entries if applied is not None else 0
    if not module.max_entries and commit.snapshot.limit > applied_entries + ENTRIES_FREE + packed:
        raise TooLargeError(
            f"the upstream announces {totals.entries:,} entries in {packed:,} bytes of metadata; "
            "nothing was touched",
            hint="if that is right, because directories repeat: set max_entries in client.toml",
        )
    if applied is None:
        return
    for count, before, unit, small in (
        (totals.entries, applied.entries, "entries", _SMALL_ENTRIES),
        (totals.bytes, applied.bytes, "bytes", _SMALL_BYTES),
    ):
        if count > max(_GROWTH * before, small):
            raise TooLargeError(
                f"the upstream announces {count:,} {unit} after {before:,}, more than {_GROWTH} "
                "times as many; nothing was touched",
                hint="if that is right: --adopt",
            )
