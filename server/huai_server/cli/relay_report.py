"""What `status` says of a relayed module: whether what was applied is what is served."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError
from huai_server.config.tables import Module
from huai_server.relay.hand_over import downstream_of

if TYPE_CHECKING:
    from huai_server.store.module_state import ModuleState


class RelayState(NamedTuple):
    """Of one module."""

    root: str
    """The state root of huai-client."""
    applied: str | None
    """The commit (hex id) that can be handed on; None: there is none."""
    problem: str | None
    """Why not."""


def relay_state(name: str, module: Module) -> RelayState | None:
    """None: the module is not relayed."""
    if not module.relay:
        return None
    try:
        return RelayState(module.relay, downstream_of(name, module).read().commit, None)
    except HuaiError as error:
        return RelayState(module.relay, None, error.message)


def relay_values(relay: RelayState | None) -> dict[str, object]:
    """The same for JSON."""
    return {"relay": relay and relay._asdict()}


def relay_text(relay: RelayState | None, state: "ModuleState") -> str:
    """The same, as the end of a line."""
    if relay is None:
        return ""
    if relay.problem:
        return f", NOT handed on: {relay.problem}"
    served = state.head and state.head.commit == relay.applied
    return f", handed on from {relay.root}" + (
        "" if served else ", where another commit is applied"
    )
