"""Whether the applied commit of a module is too old to be trusted."""

from huai_client.config.load import Module
from huai_client.run.ages import expired, too_old
from huai_client.state.state import State


def staleness(state: State, module: Module, now: float) -> str:
    """What is wrong with its age or its signature; empty: nothing."""
    over = "" if module.verify == "off" else expired(state.valid_until, now)
    seen = state.seen or state.time
    return over or too_old(state.committed, module.max_age, now, seen=seen)
