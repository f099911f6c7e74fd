"""The tables `[attest]` and `[modules.NAME.attest]` of client.toml, as a frozen, typed value.

Imports very little: each poll reads them.  `config_check` reads the key.
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
    """The settings by which a downstream attests its serial and URLs (docs/MIRRORS.md)."""

    key: Annotated[str, Meta(pattern=PATH), Example('"/etc/huai/attest"')] = ""
    """The path of a file with a private key; empty disables attestations."""
    urls: Annotated[
        tuple[str, ...], Meta(max_length=8), Example('["https://mirror.example/{name}"]')
    ] = ()
    """The URLs at which the tree is served; without any there are no attestations."""
    send: Annotated[bool, Example("true")] = True
    """True to send it to the upstream; the file in the tree is written anyway."""
    every: Annotated[Duration, Example('"1h", or 3600')] = Duration("1h")
    """The interval at which it is sent again while nothing is new."""

    @property
    def on(self) -> bool:
        """True if attestations are enabled."""
        return bool(self.key and self.urls)


NO_ATTEST = Attest()


def convert_attest(place: str, tables: tuple[object, ...], name: str) -> Attest:
    """Convert tables, of which a later one takes precedence; `name` is the module's.

    Raises `ConfigError` with `place` and the key that is wrong.
    """
    values: dict[str, object] = {}
    for table in tables:
        check_keys(place, table, Attest.__struct_fields__)
        assert isinstance(table, dict)  # noqa: S101 - check_keys
        values |= table
    attest = convert(place, values, Attest)
    urls = tuple(url.replace(_NAME, name) for url in attest.urls)
    if urls:
        _check_urls(place, urls)
    return msgspec.structs.replace(attest, urls=urls)


def _check_urls(place: str, urls: tuple[str, ...]) -> None:
    from huai_schema.codec.attestation import is_served_url  # few have this table

    for url in urls:
        if not is_served_url(url) or urls.count(url) > 1:
            raise ConfigError(
                f"{place}: urls: {masked(url)!r} is not a URL to mirror from, or is listed twice",
                hint=f"for example: {example(Attest, 'urls')}",
            )
