"""Which modules are served from where, and keeping their attr trees up to date."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from huai_program.configuration import ConfigError
from huai_program.locking import LockedError
from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, config_path
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.check import check_attr_tree
from huai_server.fallback.attr.ensure import AttrTreeResult, Building, ensure
from huai_server.fallback.attr.foreign_changes import ForeignChanges
from huai_server.fallback.attr.remove import remove_forgotten
from huai_server.fallback.attr.tree import AttrTree, attr_tree
from huai_server.fallback.conf import FallbackModule, clashing_names
from huai_server.fallback.kind import AttrTreeError
from huai_server.state.errors import storage_errors

_RETRY_SECONDS = 30.0
_FORGOTTEN = "modules that are no more"
"""Stands for the name of a module in errors about several; a name has no blanks."""
_LOOK_SECONDS = 0.02
"""At most so long in each second the service looks for damage."""
_CALM_SECONDS = 300.0
"""An attr tree that is damaged again within this time is built again after a pause."""


class _Failure(NamedTuple):
    """A failed update, which is tried again after a while, or at once for a newer commit."""

    not_before: float
    commit: str | None


def _ignore(*_what: object) -> None:
    """Nobody asked."""


@dataclass
class Trees:
    """The attr trees of all modules of one configuration."""

    root: Path
    config: ServerConfig
    on_update: Callable[[str, AttrTreeResult], None] = _ignore
    """Called when an attr tree was built or updated."""
    on_message: Callable[[str], None] = _ignore
    """Called with other messages, such as that this failed: then the module is not served."""
    building: Building = nullcontext
    """Entered while a new attr tree is made."""
    clock: Callable[[], float] = time.monotonic
    """Returns seconds."""
    _failures: dict[str, _Failure] = field(default_factory=dict)
    _repaired: dict[str, float] = field(default_factory=dict)
    """When each module's attr tree was last built because of damage, without a pause."""
    _looks: Iterator[None] | None = None
    _look_until: float = 0.0

    def refresh(self) -> None:
        """Update attr trees of older commits, and delete those without a module."""
        for name, error in self._clashes.items():
            if self._is_due(name):
                with self._trying(name):
                    raise error
        for tree in self._listed():
            if self._is_due(tree.name):
                with self._trying(tree.name):
                    if not tree.is_current():
                        self._ensure(tree)
        if self._is_due(_FORGOTTEN):
            with self._trying(_FORGOTTEN):
                self._forget()

    def look_for_changes(self) -> None:
        """Look for damage for a moment; a damaged attr tree is built again."""
        self._look_until = time.monotonic() + _LOOK_SECONDS
        self._looks = self._looks or self._rounds()
        next(self._looks)

    def prove(self) -> None:
        """Compare each attr tree with its commit, and build it again if it differs."""
        for tree in self._listed():
            if self._is_served(tree):
                with self._trying(tree.name):
                    if check_attr_tree(tree, wait=0).differences:
                        generations.distrust(tree.fallback)
                        self._ensure(tree, rebuild=True)

    def served(self) -> dict[str, FallbackModule]:
        """The modules that can be served now, as rsyncd.conf names them."""
        found = {}
        clashes = self._clashes
        for name, module in self.config.fallback_modules.items():
            tree = attr_tree(self.root, self.config, name)
            if name in clashes:
                continue
            if module.fallback.kind == "real":
                found[name] = FallbackModule(module, Path(module.path))
            elif self._is_served(tree):
                found[name] = FallbackModule(module, tree.fallback.served)
        return found

    def images(self) -> Iterator[Path]:
        """The images of the modules that can be served now."""
        for tree in self._listed():
            if tree.module.fallback.kind == "erofs" and self._is_served(tree):
                generation = generations.served_generation(tree.fallback)
                image = generation and tree.erofs.image(Path(generation))
                if image:
                    yield image

    def left_out(self) -> Iterator[tuple[str, str]]:
        """The modules that should be served and are not, each with the reason."""
        yield from ((name, error.message) for name, error in self._clashes.items())
        for tree in self._listed():
            if not tree.fallback.tree.is_symlink():
                yield tree.name, f"no attr tree: huai-server fallback build {tree.name}"
            elif not tree.is_own:
                yield tree.name, f"the attr tree belongs to {tree.owner or 'nobody'}"

    @property
    def _clashes(self) -> dict[str, ConfigError]:
        """The modules that cannot be served for their names."""
        return clashing_names(self.config.fallback_modules)

    def _listed(self) -> list[AttrTree]:
        """Of the modules that list from an attr tree."""
        names = self.config.attr_modules.keys() - self._clashes.keys()
        trees = (attr_tree(self.root, self.config, name) for name in self.config.attr_modules)
        return [tree for tree in trees if tree.name in names]

    @staticmethod
    def _is_served(tree: AttrTree) -> bool:
        return tree.fallback.tree.is_symlink() and tree.is_own

    def _is_due(self, name: str) -> bool:
        failure = self._failures.get(name)
        return (
            failure is None
            or self.clock() >= failure.not_before
            or self._commit(name) != failure.commit
        )

    def _commit(self, name: str) -> str | None:
        """The newest commit; None: there is none, or it cannot be read."""
        try:
            head = attr_tree(self.root, self.config, name).head()
        except HuaiError:
            return None
        return None if head is None else head.commit

    def _ensure(self, tree: AttrTree, *, rebuild: bool = False, look: bool = False) -> None:
        result = ensure(tree, rebuild=rebuild, look=look, wait=0, building=self.building)
        if look or result.action != "none":
            self.on_update(tree.name, result)

    def _rounds(self) -> Iterator[None]:
        """Look at one attr tree after the other, for ever; yields when a moment is over."""
        while True:
            for tree in self._listed():
                # Without a seal new clients are refused, and `refresh` builds it again.
                if not tree.is_own or not generations.is_sealed(tree.fallback):
                    continue
                one_pass = ForeignChanges(tree.fallback)
                while not one_pass.run(self._look_until):
                    yield
                if one_pass.damage is not None:
                    self.on_message(f"{tree.name}: {one_pass.damage}: was changed, and not by huai")
                    with self._trying(tree.name):
                        self._repair(tree)
            yield

    def _repair(self, tree: AttrTree) -> None:
        repaired, fallback = self._repaired.get(tree.name, -_CALM_SECONDS), tree.fallback
        if self.clock() - repaired < _CALM_SECONDS:
            with storage_errors(fallback.folder):
                generations.distrust(fallback)
            raise AttrTreeError(
                f"the attr tree was damaged again: clients are refused for {_RETRY_SECONDS:.0f} "
                "seconds, then it is built again",
                hint=f"find the program that changes {fallback.generations}",
            )
        self._repaired[tree.name] = self.clock()
        self._ensure(tree, look=True)

    def _forget(self) -> None:
        # Without server.toml its disk is more likely not mounted than all modules gone.
        if config_path(self.root).exists():
            for name in remove_forgotten(self.root, self.config):
                self.on_message(f"{name}: attr tree removed: no module lists from it any more")

    @contextmanager
    def _trying(self, name: str) -> Iterator[None]:
        try:
            yield
            self._failures.pop(name, None)
        except LockedError:
            pass  # a commit is at it
        except HuaiError as error:
            until = self.clock() + _RETRY_SECONDS
            self._failures[name] = _Failure(until, self._commit(name))
            hint = f" ({error.hint})" if error.hint else ""
            self.on_message(f"{name}: {error.message}{hint}")
