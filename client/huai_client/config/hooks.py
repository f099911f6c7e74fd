"""The table `[modules.NAME.hooks]` of client.toml, as a frozen, typed value.

Loads next to nothing: each poll reads it.  `config_check` looks at the programs.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.durations import TimeLimit
from huai_program.tables import Example

HOOK_NAMES = ("before", "on_change", "on_failure", "after")
"""In the order in which they are run."""

Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
"""The path of a program, or a list of it and its arguments."""


class Hooks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Programs that are run before and after a sync (docs/CLIENT-HOOKS.md)."""

    before: Annotated[Command | None, Example('"/usr/local/bin/before-sync"')] = None
    on_change: Annotated[Command | None, Example('["/usr/local/bin/purge", "--all"]')] = None
    on_failure: Annotated[Command | None, Example('"/usr/local/bin/alarm"')] = None
    after: Annotated[Command | None, Example('"/usr/local/bin/after-sync"')] = None
    timeout: Annotated[TimeLimit, Example('"10m", or 600')] = TimeLimit("10m")
    """How long each may take: seconds, or a number and s, m, h, d or w."""
    failure: Literal["fail", "warn"] = "fail"
    """What one that fails after a sync is: the failure of the run, or a warning."""

    def command(self, name: str) -> tuple[str, ...]:
        """The words of the hook `name`, one of `HOOK_NAMES`; none: there is no such hook."""
        return words_of(getattr(self, name))


NO_HOOKS = Hooks()


def words_of(command: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The words of a `Command`, the program first; none: there is none."""
    return (command,) if isinstance(command, str) else command or ()
