"""The upstream of one run: whom it asks, what is known of them, how long it may take.

Is there anything new?  That question is asked most, and must cost least: this loads neither git nor
the planner, and a poll that finds nothing ends here.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

from huai_client.config.mirror import Mirror
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.newest import find_newest
from huai_client.run.deadline import NEVER, Deadline
from huai_client.state.hosts import Hosts
from huai_client.state.state import State


class Upstream(NamedTuple):
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
        urls = [MetadataUrl.of(url, mirror.upstream_name, mirror.tls) for url in named]
        return cls(
            Failover(urls, hosts.health, on_message=on_message, deadline=deadline), hosts, deadline
        )


def is_up_to_date(
    state: State,
    metadata: Failover,
    *,
    timeout: float,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
) -> bool:
    """Whether the tree is whole and at the upstream's newest commit: one request, no walk.

    `timeout` in seconds, for each of the upstreams; `TimeUpError` at the deadline.  A newer commit
    is remembered for the fetch that follows (`Failover.take_heard`).  `heads` as `find_newest` has
    it.
    """
    if state.applied is None or state.attempted:
        return False
    fetch = partial(
        find_newest, timeout=timeout, deadline=deadline, heads=heads, have=state.applied
    )
    newest = metadata.first_answer(fetch)
    if newest.commit == state.applied:
        return True
    metadata.hear(newest)
    return False
