"""Taking an attr tree away."""

from huai_schema.program.locking import locked
from huai_server.fallback.attr import generations
from huai_server.fallback.attr import state as states
from huai_server.fallback.attr.sparse import SparseKind
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.places import FallbackPlaces, ModulePlaces
from huai_server.storage import storing


def remove(places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """Delete the attr tree of a module; nothing happens if there is none.

    What clients still read stays until a later build or removal.
    """
    state = states.load(fallback.state)
    if state is None:
        return
    kind = ErofsKind(places.folder) if state.kind == "erofs" else SparseKind()
    with storing(fallback.folder), locked(fallback.lock):
        generations.stop(fallback)
        generations.discard_old(fallback, kind.discard)
        fallback.state.unlink(missing_ok=True)
