"""The configured modules of a request.

Reads only symlinks in paths, and the type of a target.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from huai_client.config.load import ClientConfig, Module
from huai_client.huai_rsync.cache import recall
from huai_client.huai_rsync.request import Passthrough, RsyncRequest, Source
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State


def module_at(config: ClientConfig, dest: str) -> tuple[str, Module] | None:
    """Return name and module of the tree `dest`, or None."""
    real = os.path.realpath(dest)
    for name, module in config.modules.items():
        if os.path.realpath(module.dest) == real:
            return name, module
    return None


def touched(config: ClientConfig, targets: Iterable[str]) -> Iterator[str]:
    """Yield the names of modules whose trees may change if `targets` are written to."""
    reals = [f"{os.path.realpath(target)}/" for target in targets]
    for name, module in config.modules.items():
        tree = f"{os.path.realpath(module.dest)}/"
        if any(tree.startswith(real) or real.startswith(tree) for real in reals):
            yield name


def replaces_one_file(request: RsyncRequest | Passthrough) -> bool:
    """Return True if a request can change only one existing regular file.

    Such a file, like Arch's `lastsync`, changes upstream between commits.  The next commit updates
    it, so the tree need not be compared.
    """
    if not isinstance(request, Passthrough) or not request.file or request.deletes:
        return False
    name = re.split("[/:]", request.file)[-1]
    target = request.targets[0]
    path = os.path.join(target, name) if os.path.isdir(target) else target
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def is_content(source: Source, urls: Iterable[str]) -> bool:
    """Return True if `source` is one of a module's content URLs."""
    sources = (Source.parse(url.rstrip("/") + "/") for url in urls)
    return any(each is not None and each.same_place(source) for each in sources)


def known_urls(module: Module, places: ModulePlaces, state: State) -> tuple[str, ...] | None:
    """Return the content URLs of a module; None if this client does not know them."""
    if module.content_urls or state.applied is None:
        return tuple(each.url for each in module.content_places) or None
    memory = recall(places, state.applied)
    return memory.sources if memory else _recorded(places.repository, state.applied)


def _recorded(repository: Path, commit: str) -> tuple[str, ...] | None:
    from huai_client.metadata.repository import Repository  # not loaded by a poll

    opened = Repository(repository)
    return opened.commit(commit).descriptor.content_urls if opened.has(commit) else None
