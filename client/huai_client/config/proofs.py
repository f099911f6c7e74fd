"""A table `[modules.NAME.proofs.PROFILE]` of client.toml, as a frozen, typed value.

Imports very little: each poll reads it.  `config_check` checks programs and keyrings.
"""

from typing import Annotated

import msgspec

from huai_client.config.hooks import Command, words_of
from huai_program.configuration import ConfigError
from huai_program.durations import TimeLimit
from huai_program.tables import Example, convert, example


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
    """Convert tables by profile; `place` is that of the table above them."""
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
