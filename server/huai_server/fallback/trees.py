"""The served modules with their paths, and the updates of their attr trees."""

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
_FORGOTTEN = "removed modules"
"""The key of errors about removed modules; a module's name has no blanks."""
_LOOK_SECONDS = 0.02
"""The part of each second in which the service looks for damage, at most."""
_CALM_SECONDS = 300.0
"""The time within which an attr tree that is damaged again is rebuilt only after a pause."""


class _Failure(NamedTuple):
    """A failed update, which is tried again after a pause, or at once for a newer commit."""

    not_before: float
    """The earliest time of the next attempt, by `Trees.clock`."""
    commit: str | None


def _ignore(*_arguments: object) -> None:
    """Do nothing."""


@dataclass
class Trees:
    """The attr trees of all modules of one configuration."""

    root: Path
    config: ServerConfig
    on_update: Callable[[str, AttrTreeResult], None] = _ignore
    """Called with a module's name and the result after its attr tree was built or updated."""
    on_message: Callable[[str], None] = _ignore
    """Called with other messages, such as an error because of which a module is not served."""
    building: Building = nullcontext
    """Entered while a new attr tree is made."""
    clock: Callable[[], float] = time.monotonic
    _failures: dict[str, _Failure] = field(default_factory=dict)
    _repaired: dict[str, float] = field(default_factory=dict)
    """The time at which each module's attr tree was last repaired without a pause."""
    _looks: Iterator[None] | None = None
    _look_until: float = 0.0

    def refresh(self) -> None:
        """Build missing attr trees, update outdated ones, and delete those without a module.

        Errors are reported, not raised; after one, a module waits for 30 s or a newer commit.
        """
        for name, error in self._clashes.items():
            if self._is_due(name):
                with self._reporting_failure(name):
                    raise error
        for tree in self._attr_trees():
            if self._is_due(tree.name):
                with self._reporting_failure(tree.name):
                    if not tree.is_current():
                        self._update_tree(tree)
        if self._is_due(_FORGOTTEN):
            with self._reporting_failure(_FORGOTTEN):
                self._remove_forgotten()

    def look_for_changes(self) -> None:
        """Search attr trees for foreign changes for at most 20 ms; rebuild a changed one."""
        self._look_until = time.monotonic() + _LOOK_SECONDS
        self._looks = self._looks or self._look_repeatedly()
        next(self._looks)

    def check_all(self) -> None:
        """Compare each served attr tree with its commit, and rebuild it if it differs."""
        for tree in self._attr_trees():
            if self._is_served(tree):
                with self._reporting_failure(tree.name):
                    if check_attr_tree(tree, wait=0).differences:
                        generations.unseal(tree.fallback)
                        self._update_tree(tree, rebuild=True)

    def served(self) -> dict[str, FallbackModule]:
        """Return the modules that can be served now, by name, with their paths in rsyncd.conf.

        Leaves out clashing names, and modules whose attr tree is missing or another root's.
        """
        modules = {}
        clashes = self._clashes
        for name, module in self.config.fallback_modules.items():
            tree = attr_tree(self.root, self.config, name)
            if name in clashes:
                continue
            if module.fallback.kind == "real":
                modules[name] = FallbackModule(module, Path(module.path))
            elif self._is_served(tree):
                modules[name] = FallbackModule(module, tree.fallback.served)
        return modules

    def images(self) -> Iterator[Path]:
        """Yield the EROFS images of the modules that can be served now."""
        for tree in self._attr_trees():
            if tree.module.fallback.kind == "erofs" and self._is_served(tree):
                generation = generations.served_generation(tree.fallback)
                if generation:
                    yield tree.erofs.image(Path(generation))

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield the modules that cannot be served, with reasons: the name, or no own attr tree."""
        yield from ((name, error.message) for name, error in self._clashes.items())
        for tree in self._attr_trees():
            if not tree.fallback.tree.is_symlink():
                yield tree.name, f"no attr tree: huai-server fallback build {tree.name}"
            elif not tree.is_own:
                yield tree.name, f"the attr tree belongs to {tree.owner or 'no state root'}"

    @property
    def _clashes(self) -> dict[str, ConfigError]:
        """The modules that cannot be served because of clashing names, with the errors."""
        return clashing_names(self.config.fallback_modules)

    def _attr_trees(self) -> list[AttrTree]:
        """Return the configured attr trees, made or not; leaves out modules with clashing names."""
        names = (each for each in self.config.attr_modules if each not in self._clashes)
        return [attr_tree(self.root, self.config, name) for name in names]

    @staticmethod
    def _is_served(tree: AttrTree) -> bool:
        """True if the attr tree belongs to this root, and has a link to a generation."""
        return tree.fallback.tree.is_symlink() and tree.is_own

    def _is_due(self, name: str) -> bool:
        """True unless an update failed less than 30 s ago, and no newer commit was made since."""
        failure = self._failures.get(name)
        return (
            failure is None
            or self.clock() >= failure.not_before
            or self._newest_commit(name) != failure.commit
        )

    def _newest_commit(self, name: str) -> str | None:
        """Return the newest commit; None if it is missing or cannot be read."""
        try:
            head = attr_tree(self.root, self.config, name).head()
        except HuaiError:
            return None
        return None if head is None else head.commit

    def _update_tree(self, tree: AttrTree, *, rebuild: bool = False, look: bool = False) -> None:
        """Bring an attr tree to the newest commit; report it if it changed, or with `look`.

        `rebuild` is as for `ensure`.  Raises `LockedError` at once if another run changes it, and
        as `ensure` does.
        """
        result = ensure(tree, rebuild=rebuild, look=look, wait=0, building=self.building)
        if look or result.action != "none":
            self.on_update(tree.name, result)

    def _look_repeatedly(self) -> Iterator[None]:
        """Check the attr trees in turn, for ever, and repair them; yield when the time is over."""
        while True:
            for tree in self._attr_trees():
                # Without a seal new clients are refused, and `refresh` rebuilds it.
                if not tree.is_own or not generations.is_sealed(tree.fallback):
                    continue
                one_pass = ForeignChanges(tree.fallback)
                while not one_pass.run(self._look_until):
                    yield
                if one_pass.damage is not None:
                    self.on_message(
                        f"{tree.name}: {one_pass.damage}: another program changed this directory"
                    )
                    with self._reporting_failure(tree.name):
                        self._repair(tree)
            yield

    def _repair(self, tree: AttrTree) -> None:
        """Rebuild a damaged attr tree.

        If it is damaged again within 5 minutes, refuse it to clients and raise `AttrTreeError`.
        """
        repaired, fallback = self._repaired.get(tree.name, -_CALM_SECONDS), tree.fallback
        if self.clock() - repaired < _CALM_SECONDS:
            with storage_errors(fallback.folder):
                generations.unseal(fallback)
            raise AttrTreeError(
                f"the attr tree was damaged again: clients are refused for {_RETRY_SECONDS:.0f} "
                "seconds, then it is rebuilt",
                hint=f"find the program that changes {fallback.generations}",
            )
        self._repaired[tree.name] = self.clock()
        self._update_tree(tree, look=True)

    def _remove_forgotten(self) -> None:
        """Delete the attr trees of modules that are not in server.toml, and report it.

        Deletes none if server.toml is missing.
        """
        # If server.toml is missing, most likely its disk is not mounted.
        if config_path(self.root).exists():
            for name in remove_forgotten(self.root, self.config):
                self.on_message(f"{name}: attr tree removed: no module lists from it")

    @contextmanager
    def _reporting_failure(self, name: str) -> Iterator[None]:
        """Report an error of the block, and let `name` be tried again only after a pause.

        A `LockedError` is ignored: the run that holds the lock updates the tree.
        """
        try:
            yield
            self._failures.pop(name, None)
        except LockedError:
            pass  # a commit updates it
        except HuaiError as error:
            until = self.clock() + _RETRY_SECONDS
            self._failures[name] = _Failure(until, self._newest_commit(name))
            hint = f" ({error.hint})" if error.hint else ""
            self.on_message(f"{name}: {error.message}{hint}")
