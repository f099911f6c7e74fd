"""Is there anything new?  The question that is asked most, and must cost least.

Loads neither git nor the planner: a poll that finds nothing ends here.
"""

from functools import partial

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.failover import Upstreams
from huai_client.metadata.http import is_http, newest_commit
from huai_client.state.state import State


def nothing_new(
    state: State, upstreams: Upstreams, *, timeout: float, deadline: Deadline = NEVER
) -> bool:
    """Whether the tree is whole and at the upstream's newest commit: one request, no walk.

    `timeout` in seconds, for each of the upstreams; `TimeUpError` at the deadline.
    """
    if state.applied is None or state.attempted:
        return False
    if not all(is_http(metadata.url) for metadata in upstreams.urls):
        return False
    question = partial(newest_commit, timeout=timeout, deadline=deadline)
    return upstreams.ask(question) == state.applied
