"""The upstream of one run: its URLs, what is known of their hosts, and the deadline.

The check for new commits is the most frequent one and must cost the least: it loads neither git nor
the planner, and a poll that finds nothing ends here.
"""

from collections.abc import Callable
from functools import partial
from typing import Self

from msgspec import Struct

from huai_client.config.mirror import Mirror
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import metadata_urls
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.newest import find_newest
from huai_client.run.options import NEVER, Deadline
from huai_client.state.hosts import Hosts
from huai_client.state.state import State


class Upstream(Struct, frozen=True):
    """The upstream of one run, made once and passed on."""

    metadata: Failover
    """The URLs of the metadata."""
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
        """Make the upstream that `mirror` configures.

        `first_only`: no other URL replaces the first.  `on_message` receives the failures of one of
        several URLs, and the reasons for pauses.
        """
        hosts = Hosts(mirror.root)
        urls = metadata_urls(mirror)[: 1 if first_only else None]
        failover = Failover(urls, hosts.health, on_message=on_message, deadline=deadline)
        return cls(failover, hosts, deadline)


def is_up_to_date(
    state: State,
    metadata: Failover,
    *,
    timeout: float,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
) -> bool:
    """Return True if the tree is complete and at the newest commit: one request, no walk.

    False without a request if nothing is applied or a run was interrupted.  `timeout` in seconds,
    for each URL; raises what `Failover.first_answer` does, `TimeUpError` at the deadline.  Another
    commit is remembered for the fetch that follows (`take_newest`).  `heads`: see `find_newest`.
    """
    if state.applied is None or state.attempted:
        return False
    fetch = partial(
        find_newest, timeout=timeout, deadline=deadline, heads=heads, have=state.applied
    )
    newest = metadata.first_answer(fetch)
    if newest.commit == state.applied:
        return True
    metadata.newest = newest
    return False
