"""What must hold of a commit before a tree is compared with it; each check raises its own error."""

from huai_client.config.load import Module
from huai_client.metadata.commit import Commit
from huai_client.state.state import State
from huai_schema.codec.commits import SERIAL_STEP, Totals
from huai_schema.errors import ExitCode, HuaiError

_GROWTH = 10
"""Times what is applied."""
_SMALL_ENTRIES, _SMALL_BYTES = 1_000_000, 1 << 40
"""What a module may grow to, however small it was."""

_ENTRIES_MAX = 100_000_000
_ENTRIES_FREE = 100_000
"""Entries beyond the applied ones that any metadata may announce, however small they are.

Each further one needs a byte of metadata: names that count upwards take two or three.  One tree
that is named again and again takes nothing, while each entry costs memory, time and an inode.
"""


class WrongModuleError(HuaiError):
    """The repository is of another module."""

    exit_code = ExitCode.UNKNOWN_MODULE


class RolledBackError(HuaiError):
    """The upstream offers an older state than it did before."""

    exit_code = ExitCode.ROLLED_BACK


class TooLargeError(HuaiError):
    """The upstream announces more than the administrator has agreed to."""

    exit_code = ExitCode.FORMAT


def check_module_name(commit: Commit, name: str) -> None:
    """The metadata has to be of the module that was asked for."""
    if commit.descriptor.module != name:
        raise WrongModuleError(
            f"the upstream's repository is of module {commit.descriptor.module!r}, not {name!r}",
            hint=f"if that is right, set upstream_name = {commit.descriptor.module!r}",
        )


def check_serial(commit: Commit, state: State) -> None:
    """The serial only grows, step by step, in one module.

    A commit that was accepted before is fine while it is the newest.
    """
    if reason := _refusal(commit, state):
        raise RolledBackError(
            reason,
            hint="its metadata was restored or replaced, or url now names another upstream; "
            "if that is right: --accept-rollback",
        )


def is_rollback(commit: Commit, state: State) -> bool:
    """Whether a commit is no successor of what was accepted before."""
    return bool(_refusal(commit, state))


def _refusal(commit: Commit, state: State) -> str:
    serial, identity = commit.info.serial, commit.descriptor.identity
    known = commit.id == state.applied or commit.id in state.attempted
    if serial < state.serial or (serial == state.serial and not known):
        return f"the upstream offers serial {serial}, and {state.serial} was accepted before"
    if state.identity and identity != state.identity:
        return (
            f"the upstream's module is another one than was synced before: its identity is "
            f"{identity or 'not told'}, and {state.identity} was accepted"
        )
    if serial - state.serial > SERIAL_STEP:
        # Each commit of an honest upstream would be refused from then on.
        return f"the upstream's serial leaps from {state.serial} to {serial}"
    return ""


def check_totals(commit: Commit, module: Module, applied: Totals | None, packed: int) -> None:
    """Raise `TooLargeError` for a commit that announces more than reading it may cost.

    `applied`: the totals of the applied commit; None: nothing is applied, or any growth is agreed
    to.  `packed`: bytes of all metadata of the module, packed.
    """
    totals = commit.info.totals
    for count, what, most, key in (
        (totals.entries, "entries", module.max_entries or _ENTRIES_MAX, "max_entries"),
        (totals.bytes, "bytes", module.max_bytes, "max_bytes"),
    ):
        if count > most:
            raise TooLargeError(
                f"the upstream announces {count:,} {what}, more than {key} = {most:,} allows; "
                "nothing was touched",
                hint=f"if that is right, raise {key} in client.toml",
            )
    known = applied.entries if applied is not None else 0
    if not module.max_entries and totals.entries > known + _ENTRIES_FREE + packed:
        raise TooLargeError(
            f"the upstream announces {totals.entries:,} entries in {packed:,} bytes of metadata; "
            "nothing was touched",
            hint="if that is right, because directories repeat: set max_entries in client.toml",
        )
    if applied is None:
        return
    for count, before, what, small in (
        (totals.entries, applied.entries, "entries", _SMALL_ENTRIES),
        (totals.bytes, applied.bytes, "bytes", _SMALL_BYTES),
    ):
        if count > max(_GROWTH * before, small):
            raise TooLargeError(
                f"the upstream announces {count:,} {what} after {before:,}, more than {_GROWTH} "
                "times as many; nothing was touched",
                hint="if that is right: --adopt",
            )
