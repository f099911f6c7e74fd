"""The tables `[mirrors]` and `[allowed_downstreams.NAME]` of server.toml, as frozen values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from huai_program.durations import Duration
from huai_program.tables import Example

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The name of a downstream, which is also the name of a file."""
_Host = Annotated[str, Meta(pattern=r"^[a-z0-9_\[][a-z0-9._:\]-]*$", max_length=255)]


class Sponsor(msgspec.Struct, frozen=True):
    """The organization that pays for a mirror."""

    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")]
    url: Annotated[str, Meta(pattern=r"^https://[^\s/@?#]+(?:[/?#]\S*)?$", max_length=500)]


class AllowedDownstream(msgspec.Struct, frozen=True):
    """A downstream whose attestations are accepted."""

    key: str
    """Its public key, in canonical form once `load` has read it."""
    hosts: Annotated[tuple[_Host, ...], Meta(min_length=1)]
    """The hosts that its URLs may have, each with its port unless that is the default one."""
    country: Annotated[str, Meta(pattern=r"^(?:[A-Z]{2})?$"), Example('"DE"')] = ""
    """The code of its country (ISO 3166-1 alpha-2); empty if unknown."""
    sponsor: Sponsor | None = None

    def may_claim(self, url: str) -> bool:
        """Return True if `hosts` has the host (with its port) of `url`."""
        try:
            return urlsplit(url).netloc.lower() in self.hosts
        except ValueError:  # an IPv6 address that is malformed
            return False


class MirrorSettings(msgspec.Struct, frozen=True):
    """Rules for accepting attestations and for listing and probing mirrors."""

    max_lag: Duration = Duration("1d")
    """The lag above which a mirror is not offered to clients."""
    max_silence: Duration = Duration("2d")
    """The age of the last attestation above which a mirror is not offered."""
    clock_tolerance: Duration = Duration("5m")
    """The most by which the clock of a downstream may differ."""
    probe_files: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Files that a probe requests at each URL."""
    probe_bytes: Annotated[int, Meta(ge=1)] = 64 << 20
    """The most bytes that a probe fetches from each mirror."""
    internal: bool = False
    """True if a probe may connect to addresses of this network."""


class Mirrors(NamedTuple):
    """The configuration of mirrors, and the folder of their records."""

    folder: Path
    """The folder of their attestations, with a subfolder for each module."""
    allowed: Mapping[str, AllowedDownstream]
    settings: MirrorSettings

    def find_name(self, key: str) -> str | None:
        """Return the name of the downstream with this public key, or None."""
        return next((name for name, each in self.allowed.items() if each.key == key), None)
