"""A table `[modules.NAME.proofs.PROFILE]` of client.toml, as a frozen, typed value.

Loads next to nothing: each poll reads it.  `config_check` looks at programs and keyrings.
"""

from typing import Annotated

import msgspec

from huai_client.config.hooks import Command, words_of
from huai_program.configuration import ConfigError
from huai_program.durations import TimeLimit
from huai_program.tables import Example, convert, example


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has to accept the pointers of a package repository (docs/PROOFS.md)."""

    gpgv: Annotated[Command | None, Example('"/usr/share/keyrings/debian-archive-keyring.gpg"')] = (
        None
    )
    """The path of a keyring, or a list of them: the archive's own signatures are verified."""
    command: Annotated[Command | None, Example('["/usr/local/bin/prove", "--strict"]')] = None
    """Or a program, as for a hook."""
    timeout: Annotated[TimeLimit, Example('"1m", or 60')] = TimeLimit("1m")
    """How long each program that is run may take."""

    @property
    def keyrings(self) -> tuple[str, ...]:
        """The keyrings for gpgv; none: `words` are run."""
        return words_of(self.gpgv)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the program; none: gpgv is run."""
        return words_of(self.command)


def convert_proofs(place: str, tables: object) -> dict[str, Proof]:
    """The values by profile; `place` is that of the table above them."""
    if not isinstance(tables, dict):
        raise ConfigError(
            f"{place}]: a table was expected", hint=f"{place.rpartition(': ')[2]}.apt] begins one"
        )
    found: dict[str, Proof] = {}
    for profile, table in tables.items():
        here = f"{place}.{profile}]"
        proof = found[profile] = convert(here, table, Proof)
        if (proof.gpgv is None) == (proof.command is None):
            raise ConfigError(
                f"{here}: either gpgv or command is needed, and not both",
                hint=example(Proof, "gpgv"),
            )
    return found
