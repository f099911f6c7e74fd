"""The tables `[mirrors]` and `[allowed_downstreams.NAME]` of server.toml, as frozen values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from huai_program.durations import Duration, seconds

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Of a downstream: it is the name of a file, too."""
_Host = Annotated[str, Meta(pattern=r"^[a-z0-9_\[][a-z0-9._:\]-]*$", max_length=255)]


class AllowedDownstream(msgspec.Struct, frozen=True):
    """A downstream whose attestations are taken."""

    key: str
    """Its public key."""
    hosts: Annotated[tuple[_Host, ...], Meta(min_length=1)]
    """The hosts of URLs that it may name, each with its port where that is not the usual one."""

    def may_claim(self, url: str) -> bool:
        """Whether the host of `url` is one of its own."""
        try:
            return urlsplit(url).netloc.lower() in self.hosts
        except ValueError:  # what looks like an address of IPv6, and is none
            return False


class MirrorSettings(msgspec.Struct, frozen=True):
    """How attestations are judged, and mirrors listed and probed."""

    max_lag: Duration = Duration("1d")
    """Who is further behind is offered to nobody."""
    max_silence: Duration = Duration("2d")
    """Nor is who has said nothing for so long."""
    clock_tolerance: Duration = Duration("5m")
    """By how much the clock of a downstream may differ."""
    probe_files: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Files that a probe asks for, at each URL."""
    probe_bytes: Annotated[int, Meta(ge=1)] = 64 << 20
    """Bytes that a probe fetches of each mirror at most."""
    internal: bool = False
    """Whether a probe may connect to addresses of this network."""

    @property
    def lag_seconds(self) -> int:
        """`max_lag`."""
        return seconds(self.max_lag)

    @property
    def silence_seconds(self) -> int:
        """`max_silence`."""
        return seconds(self.max_silence)

    @property
    def tolerance(self) -> int:
        """`clock_tolerance` in seconds."""
        return seconds(self.clock_tolerance)


class Mirrors(NamedTuple):
    """All that there is to know of mirrors but what they say themselves."""

    folder: Path
    """Of what they said, by module."""
    allowed: Mapping[str, AllowedDownstream]
    """By name."""
    settings: MirrorSettings

    def named(self, key: str) -> str | None:
        """The downstream that has a public key."""
        return next((name for name, each in self.allowed.items() if each.key == key), None)
