"""The table `[modules.NAME.hooks]` of client.toml, as a frozen, typed value.

Imports very little: each poll reads it.  `config_check` checks the programs.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.durations import TimeLimit
from huai_program.tables import Example

HOOK_NAMES = ("before", "on_change", "on_failure", "after")
"""The names in the order in which hooks are run."""

Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
"""The path of a program, or a list of the path and arguments."""


class Hooks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Programs that are run before and after a sync (docs/CLIENT-HOOKS.md)."""

    before: Annotated[Command | None, Example('"/usr/local/bin/before-sync"')] = None
    on_change: Annotated[Command | None, Example('["/usr/local/bin/purge", "--all"]')] = None
    on_failure: Annotated[Command | None, Example('"/usr/local/bin/alarm"')] = None
    after: Annotated[Command | None, Example('"/usr/local/bin/after-sync"')] = None
    timeout: Annotated[TimeLimit, Example('"10m", or 600')] = TimeLimit("10m")
    """The time limit of each: seconds, or a number and s, m, h, d or w."""
    failure: Literal["fail", "warn"] = "fail"
    """The effect of a failure after a sync: it fails the run, or is a warning."""

    def command(self, name: str) -> tuple[str, ...]:
        """Return the words of the hook `name`, one of `HOOK_NAMES`; empty if it is not set."""
        return words_of(getattr(self, name))


NO_HOOKS = Hooks()


def words_of(command: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the words of a `Command`, the program first; empty without one."""
    return (command,) if isinstance(command, str) else command or ()
