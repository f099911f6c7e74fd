"""The check that the applied commit of a module is recent enough to be trusted."""

from huai_client.config.load import Module
from huai_client.run.ages import expired, too_old
from huai_client.state.state import State


def staleness(state: State, module: Module, now: float) -> str:
    """Return why the applied commit is out of date, by age or signature, or an empty text."""
    reason = "" if module.verify == "off" else expired(state.valid_until, now)
    first_seen = state.seen or state.time
    return reason or too_old(state.committed, module.max_age, now, first_seen=first_seen)
