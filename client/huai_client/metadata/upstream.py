"""The lines of one run to its upstream: whom it asks, what is known of them, how long it may take.

Loads next to nothing: each poll passes here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from huai_client.config import Module
from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl
from huai_client.state.hosts import Hosts
from huai_client.state.paths import ModulePlaces


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
        name: str,
        module: Module,
        places: ModulePlaces,
        *,
        deadline: Deadline = NEVER,
        first_only: bool = False,
        on_message: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Those that `module`, which is called `name` here, is configured with.

        `first_only`: no other upstream stands in for the first.  `on_message` is
        called with what was wrong with one of several, and with what is waited for.
        """
        hosts = Hosts(places.root)
        named = module.urls[:1] if first_only else module.urls
        urls = [MetadataUrl.of(url, module.upstream_name or name) for url in named]
        return cls(
            Failover(urls, hosts.health, on_message=on_message, deadline=deadline), hosts, deadline
        )
