"""Is there anything new?  The question that is asked most, and must cost least.

Loads neither git nor the planner: a poll that finds nothing ends here.
"""

from functools import partial

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import is_http, newest_commit
from huai_client.state.state import State


def is_up_to_date(
    state: State, metadata: Failover, *, timeout: float, deadline: Deadline = NEVER
) -> bool:
    """Whether the tree is whole and at the upstream's newest commit: one request, no walk.

    `timeout` in seconds, for each of the upstreams; `TimeUpError` at the deadline.
    """
    if state.applied is None or state.attempted:
        return False
    if not all(is_http(url.url) for url in metadata.urls):
        return False
    fetch = partial(newest_commit, timeout=timeout, deadline=deadline)
    return metadata.first_answer(fetch) == state.applied
