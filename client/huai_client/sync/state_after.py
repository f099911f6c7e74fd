"""What is recorded when a tree was brought to a commit, and its way back.

Reads nothing but the clock.
"""

import time

from huai_client.plan.prepared import Prepared
from huai_client.state.state import State


def finished(
    prepared: Prepared, former: State, *, serial: int, identity: str, keeps: bool
) -> State:
    """The state after `former`; `keeps`: what the run took away is in the trash."""
    commit, extent, now = prepared.commit, prepared.extent, int(time.time())
    before, key = _way_back(prepared, former) if keeps else ("", "")
    return State(
        applied=commit.id,
        serial=serial,
        time=now,
        total_bytes=extent.bytes,
        committed=commit.time,
        entries=extent.entries,
        filter=prepared.filter,
        before=before,
        before_filter=key,
        trash=former.trash,
        identity=identity,
        seen=former.first_seen(commit.id, now),
    )


def _way_back(prepared: Prepared, former: State) -> tuple[str, str]:
    """The commit that was applied before, and through which filter."""
    if (former.applied, former.filter) == (prepared.commit.id, prepared.filter):
        return former.before, former.before_filter
    return former.applied or "", former.filter
