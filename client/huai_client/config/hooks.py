"""The tables `[modules.NAME.hooks]` and `[modules.NAME.proofs.PROFILE]` of client.toml, as values.

Imports very little: each poll reads them.  `config_check` checks programs and keyrings.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from huai_program.configuration import ConfigError
from huai_program.durations import TimeLimit
from huai_program.tables import Example, convert, example

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


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that has to accept the pointers of a package repository (docs/CLIENT-HOOKS.md)."""

    gpgv: Annotated[Command | None, Example('"/usr/share/keyrings/debian-archive-keyring.gpg"')] = (
        None
    )
    """The path of a keyring, or a list of them, to verify the archive's own signatures."""
    command: Annotated[Command | None, Example('["/usr/local/bin/prove", "--strict"]')] = None
    """A program instead, as for a hook."""
    timeout: Annotated[TimeLimit, Example('"1m", or 60')] = TimeLimit("1m")
    """The time limit of each program."""

    @property
    def keyrings(self) -> tuple[str, ...]:
        """The keyrings for gpgv; empty if `words` are run."""
        return words_of(self.gpgv)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the program; empty if gpgv is run."""
        return words_of(self.command)


def convert_proofs(place: str, tables: object) -> dict[str, Proof]:
    """Convert tables by profile; `place` names the table above them in a `ConfigError`.

    Raises it for a wrong table, and unless one of `gpgv` and `command` is set.
    """
    if not isinstance(tables, dict):
        raise ConfigError(
            f"{place}] must be a table", hint=f"{place.rpartition(': ')[2]}.apt] begins one"
        )
    proofs: dict[str, Proof] = {}
    for profile, table in tables.items():
        table_place = f"{place}.{profile}]"
        proof = proofs[profile] = convert(table_place, table, Proof)
        if (proof.gpgv is None) == (proof.command is None):
            raise ConfigError(
                f"{table_place}: either gpgv or command is needed, and not both",
                hint=example(Proof, "gpgv"),
            )
    return proofs
