"""Is there anything new?  The question that is asked most, and must cost least.

Loads neither git nor the planner: a poll that finds nothing ends here.
"""

from huai_client.state import State
from huai_client.upstream import MetadataUrl, is_http, newest_commit


def nothing_new(state: State, metadata: MetadataUrl) -> bool:
    """Whether the tree is whole and at the upstream's newest commit: one request, no walk."""
    if state.applied is None or state.attempted or not is_http(metadata.url):
        return False
    return newest_commit(metadata) == state.applied
