"""The lines of one run to its upstream: whom it asks, what is known of them, how long it may take.

Loads next to nothing: each poll passes here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl
from huai_client.mirror import Mirror
from huai_client.state.hosts import Hosts


@dataclass(frozen=True, slots=True)
class Upstream:
    """Made once for each run of a module, and handed down."""

    metadata: Failover
    """Where the metadata are."""
    hosts: Hosts
    deadline: Deadline

    @classmethod
    def of(
        cls,
        mirror: Mirror,
        *,
        deadline: Deadline = NEVER,
        first_only: bool = False,
        on_message: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Those that `mirror` is configured with.

        `first_only`: no other upstream stands in for the first.  `on_message` hears what was wrong
        with one of several, and what is waited for.
        """
        hosts = Hosts(mirror.root)
        named = mirror.config.urls[:1] if first_only else mirror.config.urls
        urls = [MetadataUrl.of(url, mirror.upstream_name) for url in named]
        return cls(
            Failover(urls, hosts.health, on_message=on_message, deadline=deadline), hosts, deadline
        )
