"""Taking an attr tree away."""

from huai_schema.program.locking import locked
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.kinds import discard_of
from huai_server.places import FallbackPlaces, ModulePlaces
from huai_server.storage import storing


def remove(places: ModulePlaces, fallback: FallbackPlaces) -> None:
    """Delete the attr tree of a module; nothing happens if there is none.

    What clients still read stays until a later build or removal.
    """
    if not fallback.state.exists():
        return
    with storing(fallback.folder), locked(fallback.lock):
        generations.stop(fallback)
        generations.discard_old(fallback, discard_of(places))
        fallback.state.unlink(missing_ok=True)
