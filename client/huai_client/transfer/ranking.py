"""Ranks the mirrors that an upstream names, by the speeds that were measured.

An upstream may name hundreds.  The fastest of the measured ones come first, then one that is not
measured, so that each gets its trial in time.
"""

from collections.abc import Sequence

from huai_client.state.hosts import Hosts
from huai_client.transfer.urls import ContentUrl, Transport

_RANKED = 3
_FEW = 6


def fastest(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """Return a few of `urls`, the fastest first."""
    measured = [
        (speed.expected, url) for url in urls if (speed := hosts.speed.of_service(url.service))
    ]
    ranked = [url for _, url in sorted(measured, key=lambda each: each[0])]
    unknown = [url for url in urls if url not in ranked]
    return [*ranked[:_RANKED], *unknown[:1], *ranked[_RANKED:], *unknown[1:]][:_FEW]


def to_sample(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """Return the `urls` whose speed is not known, for a small sample; a few at a time."""
    if len(urls) < 2:  # nothing to choose from
        return []
    http = (url for url in urls if url.transport is Transport.HTTP)
    return [url for url in http if hosts.speed.of_service(url.service) is None][:_RANKED]


def note_speed(
    url: ContentUrl, hosts: Hosts, size: int, seconds: float, first_byte: float = 0
) -> None:
    """Record the speed of `url`, if the upstream named it: our own have a configured order."""
    if not url.own:
        hosts.speed.observe(url.service, size, seconds, first_byte)
