"""Which kind of attr tree a module has."""

from collections.abc import Callable
from pathlib import Path

from huai_server.config.tables import Module
from huai_server.fallback.attr.sparse import SparseKind
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind
from huai_server.state.paths import ModulePlaces


def configured_kind(name: str, module: Module, places: ModulePlaces) -> AttrTreeKind:
    """The kind in the configuration; `AttrTreeError` for a module without an attr tree."""
    chosen = module.fallback.kind
    if chosen == "sparse":
        return SparseKind()
    if chosen == "erofs":
        return ErofsKind(places.folder)
    raise AttrTreeError(
        f"module {name!r} has no attr tree: its fallback.kind is {chosen!r}",
        hint='set it to "sparse" or "erofs" in server.toml',
    )


def discard_of(places: ModulePlaces) -> Callable[[Path], None]:
    """A function that deletes a generation of any kind: the configuration may have changed."""

    def discard(generation: Path) -> None:
        kind = ErofsKind(places.folder) if generation.is_mount() else SparseKind()
        kind.discard(generation)

    return discard
