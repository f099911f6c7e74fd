"""Which modules are served from where, and keeping their attr trees up to date."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_program.configuration import ConfigError
from huai_program.locking import LockedError
from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, config_path
from huai_server.config.tables import ATTR_KINDS, Module
from huai_server.fallback.attr import AttrTreeResult, belonging, ensure, generations, is_current
from huai_server.fallback.attr.check import check_attr_tree
from huai_server.fallback.attr.ensure import Building
from huai_server.fallback.attr.foreign_changes import ForeignChanges
from huai_server.fallback.attr.remove import remove_forgotten
from huai_server.fallback.conf import FallbackModule, clashing_names
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.fallback.kind import AttrTreeError
from huai_server.state.errors import storage_errors
from huai_server.state.paths import FallbackPlaces, ModulePlaces, fallback_places, module_places
from huai_server.store.repository import read_head

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


@dataclass
class Trees:
    """The attr trees of all modules of one configuration."""

    root: Path
    config: ServerConfig
    on_update: Callable[[str, AttrTreeResult], None]
    """Called when an attr tree was built or updated."""
    on_failure: Callable[[str, HuaiError], None]
    """Called when that failed; a module without an attr tree is not served."""
    on_message: Callable[[str], None]
    """Called with other messages."""
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
        clashes = self._clashes
        for name, error in clashes.items():
            if self._is_due(name):
                self._trying(name, partial(_refuse, error))
        for name, module in self.config.attr_modules.items():
            if name not in clashes and self._is_due(name):
                self._trying(name, partial(self._refresh, name, module))
        if self._is_due(_FORGOTTEN):
            self._trying(_FORGOTTEN, self._forget)

    def look_for_changes(self) -> None:
        """Look for damage for a moment; a damaged attr tree is built again."""
        self._look_until = time.monotonic() + _LOOK_SECONDS
        self._looks = self._looks or self._rounds()
        next(self._looks)

    def prove(self) -> None:
        """Compare each attr tree with its commit, and build it again if it differs."""
        for name, served in self.served().items():
            if served.module.fallback.kind in ATTR_KINDS:
                self._trying(name, partial(self._prove, name, served.module))

    def served(self) -> dict[str, FallbackModule]:
        """The modules that can be served now, as rsyncd.conf names them."""
        found = {}
        clashes = self._clashes
        for name, module in self.config.modules.items():
            places, fallback = self._places(name)
            if name in clashes:
                continue
            if module.fallback.kind == "real":
                found[name] = FallbackModule(module, Path(module.path))
            elif (
                module.fallback.kind != "off"
                and fallback.tree.is_symlink()
                and belonging.is_own(places, fallback)
            ):
                found[name] = FallbackModule(module, fallback.served)
        return found

    def images(self) -> Iterator[Path]:
        """The images of the modules that can be served now."""
        for name, served in self.served().items():
            if served.module.fallback.kind == "erofs":
                places, fallback = self._places(name)
                generation = generations.served_generation(fallback)
                image = generation and ErofsKind(places.folder).image(Path(generation))
                if image:
                    yield image

    def left_out(self) -> Iterator[tuple[str, str]]:
        """The modules that should be served and are not, each with the reason."""
        clashes = self._clashes
        yield from ((name, error.message) for name, error in clashes.items())
        for name in self.config.attr_modules:
            places, fallback = self._places(name)
            if name in clashes:
                continue
            if fallback.tree.is_symlink() and not belonging.is_own(places, fallback):
                yield name, f"the attr tree belongs to {belonging.owner(fallback) or 'nobody'}"
            elif not fallback.tree.is_symlink():
                yield name, f"no attr tree: huai-server fallback build {name}"

    @property
    def _clashes(self) -> dict[str, ConfigError]:
        """The modules that cannot be served for their names."""
        return clashing_names(self.config.fallback_modules)

    def _places(self, name: str) -> tuple[ModulePlaces, FallbackPlaces]:
        folder = Path(self.config.fallback.folder)
        return module_places(self.root, name), fallback_places(folder, name)

    def _is_due(self, name: str) -> bool:
        failure = self._failures.get(name)
        return (
            failure is None
            or self.clock() >= failure.not_before
            or self._commit(name) != failure.commit
        )

    def _commit(self, name: str) -> str | None:
        """The newest commit; None: there is none, or it cannot be read."""
        places, _ = self._places(name)
        try:
            head = read_head(places.repository) if places.repository.exists() else None
        except HuaiError:
            return None
        return None if head is None else head.commit

    def _refresh(self, name: str, module: Module) -> None:
        places, fallback = self._places(name)
        if not is_current(module, places, fallback):
            result = ensure(name, module, places, fallback, wait=0, building=self.building)
            if result.action != "none":
                self.on_update(name, result)

    def _rounds(self) -> Iterator[None]:
        """Look at one attr tree after the other, for ever; yields when a moment is over."""
        while True:
            for name, module in list(self.config.attr_modules.items()):
                places, fallback = self._places(name)
                # Without a seal new clients are refused, and `refresh` builds it again.
                if not belonging.is_own(places, fallback) or not generations.is_sealed(fallback):
                    continue
                one_pass = ForeignChanges(fallback)
                while not one_pass.run(self._look_until):
                    yield
                if one_pass.damage is not None:
                    self.on_message(f"{name}: {one_pass.damage}: was changed, and not by huai")
                    self._trying(name, partial(self._repair, name, module))
            yield

    def _repair(self, name: str, module: Module) -> None:
        places, fallback = self._places(name)
        if self.clock() - self._repaired.get(name, -_CALM_SECONDS) < _CALM_SECONDS:
            with storage_errors(fallback.folder):
                generations.distrust(fallback)
            raise AttrTreeError(
                f"the attr tree was damaged again: clients are refused for {_RETRY_SECONDS:.0f} "
                "seconds, then it is built again",
                hint=f"find the program that changes {fallback.generations}",
            )
        self._repaired[name] = self.clock()
        made = ensure(name, module, places, fallback, look=True, wait=0, building=self.building)
        self.on_update(name, made)

    def _prove(self, name: str, module: Module) -> None:
        places, fallback = self._places(name)
        if check_attr_tree(name, module, places, fallback, wait=0).differences:
            generations.distrust(fallback)
            made = ensure(
                name, module, places, fallback, rebuild=True, wait=0, building=self.building
            )
            self.on_update(name, made)

    def _forget(self) -> None:
        # Without server.toml its disk is more likely not mounted than all modules gone.
        if config_path(self.root).exists():
            folder = Path(self.config.fallback.folder)
            for name in remove_forgotten(self.root, folder, self.config.attr_modules):
                self.on_message(f"{name}: attr tree removed: no module lists from it any more")

    def _trying(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
            self._failures.pop(name, None)
        except LockedError:
            pass  # a commit is at it
        except HuaiError as error:
            until = self.clock() + _RETRY_SECONDS
            self._failures[name] = _Failure(until, self._commit(name))
            self.on_failure(name, error)


def _refuse(error: HuaiError) -> None:
    raise error
