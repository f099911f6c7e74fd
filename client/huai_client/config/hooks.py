"""The table `[modules.NAME.hooks]` of client.toml, as a frozen, typed value.

Loads next to nothing: each poll reads it.  `config_check` looks at the programs.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from huai_program.configuration import check_keys, value_error

T = TypeVar("T", bound=msgspec.Struct)
TIME_LIMIT = "^[1-9][0-9]{0,8}[smhdw]?$"
_EXAMPLES = {
    "before": 'before = "/usr/local/bin/before-sync"',
    "on_change": 'on_change = ["/usr/local/bin/purge", "--all"]',
    "on_failure": 'on_failure = "/usr/local/bin/alarm"',
    "after": 'after = "/usr/local/bin/after-sync"',
    "timeout": 'timeout = "10m", or 600',
    "failure": 'failure = "fail", or "warn"',
}
HOOK_NAMES = ("before", "on_change", "on_failure", "after")
"""In the order in which they are run."""

Command = Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]
"""The path of a program, or a list of it and its arguments."""


class Hooks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Programs that are run before and after a sync (docs/CLIENT-HOOKS.md)."""

    before: Command | None = None
    on_change: Command | None = None
    on_failure: Command | None = None
    after: Command | None = None
    timeout: Annotated[str, Meta(pattern=TIME_LIMIT)] = "10m"
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


def convert_hooks(place: str, table: object) -> Hooks:
    """The value of a table; `ConfigError` with the key that is wrong."""
    return convert_programs(place, table, Hooks, _EXAMPLES)


def convert_programs(place: str, table: object, kind: type[T], examples: Mapping[str, str]) -> T:
    """The same for any `kind` of table with a `timeout`; `examples`: right values, by key."""
    check_keys(place, table, kind.__struct_fields__)
    assert isinstance(table, dict)  # noqa: S101 - check_keys
    spelt = {"timeout": str(table["timeout"])} if type(table.get("timeout")) is int else {}
    try:
        return msgspec.convert({**table, **spelt}, kind)
    except msgspec.ValidationError as error:
        span = f"Expected `str` matching regex {TIME_LIMIT!r}"
        words = "is not a duration above 0 (examples: 90, 30m, 12h, 2d)"
        reason = str(error).replace(span, words)
        raise value_error(place, reason, lambda key: examples.get(key, "")) from None
