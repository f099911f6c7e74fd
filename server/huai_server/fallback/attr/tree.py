"""The attr tree of one module: its state root, its path, and its integrity.

Two state roots may name the same folder for the fallback, so a trial with a second root may find
the attr trees of production.  Any root may replace or delete the attr tree of a root that is gone.
Rule to keep: call one of these checks before an attr tree is changed, replaced or deleted.
"""

import os
from pathlib import Path
from typing import NamedTuple

from huai_server.config.load import ServerConfig
from huai_server.config.tables import Module, ModuleFallback
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.state import STATE_FILE, AttrState
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind
from huai_server.fallback.sparse.kind import SparseKind
from huai_server.state.paths import FallbackPlaces, ModulePlaces, module_places
from huai_server.store.repository import Head, Repository


class AttrTree(NamedTuple):
    """The attr tree that a module of this state root has, or may get."""

    name: str
    module: Module
    """The configured module; without a configuration one that has no attr tree."""
    places: ModulePlaces
    fallback: FallbackPlaces

    @property
    def owner(self) -> str | None:
        """The state root that it belongs to; None without an attr tree or a record."""
        return generations.target(self.fallback.root)

    @property
    def is_own(self) -> bool:
        """True if the attr tree exists and belongs to this state root."""
        return self.owner == self._root

    @property
    def is_orphan(self) -> bool:
        """True if the state root that it belongs to is gone."""
        return self.owner is not None and not os.path.lexists(self.owner)

    def check_own(self) -> None:
        """Raise `AttrTreeError` if the attr tree belongs to another state root that exists."""
        owner = self.owner
        if owner not in (None, self._root) and not self.is_orphan:
            raise AttrTreeError(
                f"{self.fallback.folder}: this attr tree of {self.name!r} belongs to the state "
                f"root {owner}",
                hint="set fallback.folder in this root's server.toml to another folder; or, if "
                f"that attr tree is no longer needed: huai-server --root {owner} fallback remove "
                f"{self.name}",
            )

    def check_path(self) -> None:
        """Raise `AttrTreeError` for an attr tree that lists another path than the module's.

        The path of an orphan is not compared.
        """
        listed = generations.target(self.fallback.real)
        if listed not in (None, self.module.path) and not self.is_orphan:
            raise AttrTreeError(
                f"{self.fallback.folder}: this attr tree of {self.name!r} lists {listed}, and the "
                f"module's path is {self.module.path}",
                hint="if the module was moved there on purpose, run once: "
                f"huai-server fallback build --rebuild {self.name}",
            )

    def claim(self) -> None:
        """Record on disk that the attr tree belongs to this state root."""
        if not self.is_own:
            generations.replace_link(self.fallback.root, self._root)

    def whole_state(self) -> AttrState | None:
        """Return the state of a whole, served attr tree of the configured kind, or None.

        It must belong to this root, list the path of the module, and have its seal.
        """
        state = STATE_FILE.load(self.fallback.state)
        is_whole = (
            state is not None
            and state.target is None
            and self.is_own
            and state.kind == self.module.fallback.kind
            and state.generation == generations.served_generation(self.fallback)
            and generations.target(self.fallback.real) == self.module.path
            and generations.is_sealed(self.fallback)
        )
        return state if is_whole else None

    def is_current(self) -> bool:
        """Return True if the attr tree is undamaged, served, and lists the newest commit.

        Reads a few small files and takes no lock; False while an update runs.
        """
        state = None if self.fallback.updating.exists() else self.whole_state()
        head = self.head() if state is not None else None
        return state is not None and head is not None and head.commit == state.commit

    def head(self) -> Head | None:
        """Return the newest commit of the module, or None before the first one."""
        path = self.places.repository
        return Repository(path).head() if path.exists() else None

    def kind(self) -> AttrTreeKind:
        """Return the configured kind; raises `AttrTreeError` for a module without an attr tree."""
        chosen = self.module.fallback.kind
        if chosen == "sparse":
            return SparseKind(self.fallback.folder)
        if chosen == "erofs":
            return self.erofs
        raise AttrTreeError(
            f"module {self.name!r} has no attr tree: its fallback.kind is {chosen!r}",
            hint='set it to "sparse" or "erofs" in server.toml',
        )

    @property
    def erofs(self) -> ErofsKind:
        """The kind of EROFS images, regardless of the configured one."""
        return ErofsKind(self.places.folder)

    def discard(self, generation: Path) -> None:
        """Delete a generation, of whichever kind it is: the configuration may have changed."""
        kind = self.erofs if generation.is_mount() else SparseKind(self.fallback.folder)
        kind.discard(generation)

    @property
    def _root(self) -> str:
        return os.path.realpath(self.places.root)


_UNCONFIGURED = Module(path="", fallback=ModuleFallback(kind="off"))


def attr_tree(root: Path, config: ServerConfig, name: str) -> AttrTree:
    """Return the attr tree of the module `name`; neither needs to exist, and nothing is read."""
    module = config.modules.get(name, _UNCONFIGURED)
    fallback = FallbackPlaces(Path(config.fallback.folder) / name)
    return AttrTree(name, module, module_places(root, name), fallback)
