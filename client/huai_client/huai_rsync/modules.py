"""The configured modules that a request is about.

Reads nothing but the symlinks in paths, and whether a target is a file.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from huai_client.config.load import ClientConfig, Module
from huai_client.huai_rsync.cache import recall
from huai_client.huai_rsync.request import Passthrough, RsyncRequest
from huai_client.huai_rsync.source import Source
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State


def module_at(config: ClientConfig, dest: str) -> tuple[str, Module] | None:
    """The module whose tree is the folder `dest`, by name."""
    real = os.path.realpath(dest)
    for name, module in config.modules.items():
        if os.path.realpath(module.dest) == real:
            return name, module
    return None


def touched(config: ClientConfig, targets: Iterable[str]) -> Iterator[str]:
    """The names of modules in whose trees something may change if `targets` are written to."""
    reals = [f"{os.path.realpath(target)}/" for target in targets]
    for name, module in config.modules.items():
        tree = f"{os.path.realpath(module.dest)}/"
        if any(tree.startswith(real) or real.startswith(tree) for real in reals):
            yield name


def replaces_one_file(request: RsyncRequest | Passthrough) -> bool:
    """Whether a request can change only one regular file that exists already.

    Such a file, like Arch's `lastsync`, changes upstream between commits.  The next commit brings
    it in step, so the tree need not be compared.
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
    """Whether `source` is one of a module's content URLs."""
    found = (Source.parse(url.rstrip("/") + "/") for url in urls)
    return any(each is not None and each.same_place(source) for each in found)


def known_urls(module: Module, places: ModulePlaces, state: State) -> tuple[str, ...] | None:
    """The content URLs of a module, as far as this client knows them; None: it does not."""
    if module.content_urls or state.applied is None:
        return tuple(each.url for each in module.content_places) or None
    memory = recall(places, state.applied)
    return memory.sources if memory else _recorded(places.repository, state.applied)


def _recorded(repository: Path, commit: str) -> tuple[str, ...] | None:
    from huai_client.metadata.repository import (
        Repository,  # loads git's library, as a poll does not
    )

    found = Repository(repository)
    return found.commit(commit).descriptor.content_urls if found.has(commit) else None
