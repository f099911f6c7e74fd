"""The tables `[attest]` and `[modules.NAME.attest]` of client.toml, as a frozen, typed value.

Loads next to nothing: each poll reads them.  `config_check` looks at the key.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from huai_program.configuration import ConfigError
from huai_program.durations import Duration
from huai_program.tables import PATH, Example, check_keys, convert, example
from huai_program.urls import masked

_NAME = "{name}"


class Attest(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a downstream says which serial it holds, and where (docs/MIRRORS.md)."""

    key: Annotated[str, Meta(pattern=PATH), Example('"/etc/huai/attest"')] = ""
    """The path of a file with a private key; empty: nothing is attested."""
    urls: Annotated[
        tuple[str, ...], Meta(max_length=8), Example('["https://mirror.example/{name}"]')
    ] = ()
    """Where the tree is served; none: nothing is attested."""
    send: Annotated[bool, Example("true")] = True
    """Whether the upstream is told; the file in the tree is written anyway."""
    every: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """How often that is said again while nothing is new."""

    @property
    def on(self) -> bool:
        """Whether anything is attested."""
        return bool(self.key and self.urls)


NO_ATTEST = Attest()


def convert_attest(place: str, tables: tuple[object, ...], name: str) -> Attest:
    """The value of the tables, of which a later one counts more; `name` is the module's.

    `ConfigError` with the key that is wrong; `place` is for its message.
    """
    values: dict[str, object] = {}
    for table in tables:
        check_keys(place, table, Attest.__struct_fields__)
        assert isinstance(table, dict)  # noqa: S101 - check_keys
        values |= table
    made = convert(place, values, Attest)
    urls = tuple(url.replace(_NAME, name) for url in made.urls)
    if urls:
        _check_urls(place, urls)
    return msgspec.structs.replace(made, urls=urls)


def _check_urls(place: str, urls: tuple[str, ...]) -> None:
    from huai_schema.codec.attestation import is_served_url  # few have this table

    for url in urls:
        if not is_served_url(url) or urls.count(url) > 1:
            raise ConfigError(
                f"{place}: urls: {masked(url)!r} is not a URL to mirror from, or is there twice",
                hint=f"for example: {example(Attest, 'urls')}",
            )
