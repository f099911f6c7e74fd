"""Which modules are served from where, and keeping their attr trees up to date."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_schema.program.locking import LockedError
from huai_server.config import ATTR_KINDS, Module, ServerConfig
from huai_server.fallback.attr import Result, ensure, is_current
from huai_server.fallback.attr.check import check
from huai_server.fallback.conf import Served
from huai_server.places import fallback_places, module_places

_RETRY_SECONDS = 30.0


@dataclass
class Trees:
    """The attr trees of all modules of one configuration."""

    root: Path
    config: ServerConfig
    done: Callable[[str, Result], None]
    """Told when an attr tree was built or updated."""
    failed: Callable[[str, HuaiError], None]
    """Told when one could not be; the module is not served if it has none."""
    _not_before: dict[str, float] = field(default_factory=dict)

    def refresh(self) -> None:
        """Bring up to date what is not; what failed is tried again after a while."""
        for name, module in self.config.modules.items():
            if module.fallback.kind in ATTR_KINDS and self._is_due(name):
                self._trying(name, partial(self._refresh, name, module))

    def prove(self) -> None:
        """Compare each attr tree with its commit, and build it anew if it differs."""
        for name, served in self.served().items():
            if served.module.fallback.kind in ATTR_KINDS:
                self._trying(name, partial(self._prove, name, served.module))

    def served(self) -> dict[str, Served]:
        """The modules that can be served now, as rsyncd.conf names them."""
        found = {}
        for name, module in self.config.modules.items():
            places = fallback_places(self._folder, name)
            if module.fallback.kind == "real":
                found[name] = Served(module, Path(module.path))
            elif module.fallback.kind != "off" and places.tree.is_symlink():
                found[name] = Served(module, places.served)
        return found

    @property
    def _folder(self) -> Path:
        return Path(self.config.fallback.folder)

    def _is_due(self, name: str) -> bool:
        return time.monotonic() >= self._not_before.get(name, 0)

    def _refresh(self, name: str, module: Module) -> None:
        places, fallback = module_places(self.root, name), fallback_places(self._folder, name)
        if not is_current(module, places, fallback):
            result = ensure(name, module, places, fallback, wait=0)
            if result.action != "none":
                self.done(name, result)

    def _prove(self, name: str, module: Module) -> None:
        places, fallback = module_places(self.root, name), fallback_places(self._folder, name)
        if check(name, module, places, fallback, wait=0).differences:
            self.done(name, ensure(name, module, places, fallback, rebuild=True, wait=0))

    def _trying(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except LockedError:
            pass  # a commit is at it
        except HuaiError as error:
            self._not_before[name] = time.monotonic() + _RETRY_SECONDS
            self.failed(name, error)
