"""Whether an attr tree is what it should be, cheaply."""

from huai_server.config import Module
from huai_server.fallback.attr import belonging, generations
from huai_server.fallback.attr import state as states
from huai_server.paths import FallbackPlaces, ModulePlaces
from huai_server.store.repository import read_head


def is_current(module: Module, places: ModulePlaces, fallback: FallbackPlaces) -> bool:
    """Whether the attr tree is this root's, whole, served and of the newest commit.

    Reads a few small files, takes no lock; False while an update runs.
    """
    if not belonging.is_own(places, fallback) or fallback.updating.exists():
        return False
    state = states.load(fallback.state)
    if state is None or state.target is not None or state.kind != module.fallback.kind:
        return False
    if state.generation != generations.served(fallback) or not generations.is_sealed(fallback):
        return False
    if not generations.points_to(fallback, module.path):
        return False
    head = read_head(places.repository) if places.repository.exists() else None
    return head is not None and head.commit == state.commit
