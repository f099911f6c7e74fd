"""Which of the mirrors that an upstream names are asked, and in which order: by what was seen.

An upstream may name hundreds.  The fastest of those that are known come first, then one that is
not, so that each gets its trial in time.
"""

from collections.abc import Sequence

from huai_client.state.hosts import Hosts
from huai_client.transfer.urls import ContentUrl, Transport

_KNOWN = 3
_FEW = 6


def fastest(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """A few of `urls`, the fastest first."""
    seen = [(found.expected, url) for url in urls if (found := hosts.speed.of_service(url.service))]
    known = [url for _, url in sorted(seen, key=lambda each: each[0])]
    unknown = [url for url in urls if url not in known]
    return [*known[:_KNOWN], *unknown[:1], *known[_KNOWN:], *unknown[1:]][:_FEW]


def to_sample(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """Those of `urls` of which a small sample would tell something new; a few at a time."""
    if len(urls) < 2:  # there is no choice
        return []
    http = (url for url in urls if url.transport is Transport.HTTP)
    return [url for url in http if hosts.speed.of_service(url.service) is None][:_KNOWN]


def note_speed(
    url: ContentUrl, hosts: Hosts, size: int, seconds: float, first_byte: float = 0
) -> None:
    """Remember how fast `url` was, if the upstream named it: our own are asked as we say."""
    if not url.own:
        hosts.speed.observe(url.service, size, seconds, first_byte)
