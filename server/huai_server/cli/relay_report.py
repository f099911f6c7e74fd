"""The state of a relayed module in `status`: the applied and the served commit."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError
from huai_server.config.tables import Module
from huai_server.relay.hand_over import downstream_of

if TYPE_CHECKING:
    from huai_server.store.module_state import ModuleState


class RelayState(NamedTuple):
    """The state of a relayed module."""

    root: str
    """The state root of huai-client."""
    applied: str | None
    """The applied commit (hex id), if it can be relayed."""
    problem: str | None
    """The reason why it cannot."""


def relay_state(name: str, module: Module) -> RelayState | None:
    """Return the state of a module, if it is relayed."""
    if not module.relay:
        return None
    try:
        return RelayState(module.relay, downstream_of(name, module).read().commit, None)
    except HuaiError as error:
        return RelayState(module.relay, None, error.message)


def relay_values(relay: RelayState | None) -> dict[str, object]:
    """Return the state for JSON."""
    return {"relay": relay and relay._asdict()}


def relay_text(relay: RelayState | None, state: "ModuleState") -> str:
    """Return the state as the end of a line."""
    if relay is None:
        return ""
    if relay.problem:
        return f", NOT relayed: {relay.problem}"
    served = state.head and state.head.commit == relay.applied
    return f", relayed from {relay.root}" + ("" if served else ", where another commit is applied")
