"""The rule by which huai can carry out a request, in one place.

Huai runs if all of this is true, and the real rsync otherwise:

- every option is understood (`parse`);
- DEST is the tree of a module of client.toml;
- the source is one of that module's content URLs: those of client.toml, or if there are none
  those that the upstream names;
- the call deletes (`--delete` in any form), and excludes the same as the module's `filter`; or it
  does not delete, excludes at least that, and calls that delete come in between;
- as root: it keeps owner and group both, by name, or neither.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.config.load import ClientConfig, Module
from huai_client.config.modes import Modes
from huai_client.huai_rsync.cache import recall
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.filters import beyond_filter, unlike_filter
from huai_client.huai_rsync.request import Passthrough, RsyncRequest, RsyncSource
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State
from huai_schema.entries import ROOT_OWNER
from huai_schema.paths import show

if TYPE_CHECKING:
    from huai_client.filters import Rule
    from huai_client.plan.operations import Plan
    from huai_schema.entries import Entry


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


def is_content(source: RsyncSource, urls: Iterable[str]) -> bool:
    """Return True if `source` is one of a module's content URLs."""
    sources = (RsyncSource.parse(url.rstrip("/") + "/") for url in urls)
    return any(each is not None and each.same_place(source) for each in sources)


def known_urls(module: Module, places: ModulePlaces, state: State) -> tuple[str, ...] | None:
    """Return the content URLs of a module, of client.toml or else of the applied commit.

    None if this client does not know them.
    """
    if module.content_urls or state.applied is None:
        return tuple(each.url for each in module.ranked_urls) or None
    memory = recall(places, state.applied)
    return memory.sources if memory else _recorded(places.repository, state.applied)


def _recorded(repository: Path, commit: str) -> tuple[str, ...] | None:
    """Return the content URLs of a commit; None if it is not in the repository."""
    from huai_client.metadata.repository import Repository  # not loaded by a poll

    opened = Repository(repository)
    return opened.commit(commit).descriptor.content_urls if opened.has(commit) else None


_PARTS_MOST = 8


def check_owners(request: RsyncRequest) -> None:
    """Raise `RsyncNeededError` for root if only one of owner and group is kept."""
    if os.geteuid() != 0:
        return
    if request.owner != request.group:
        raise RsyncNeededError("only one of owner and group is kept")


def check_numbers(request: RsyncRequest, plan: "Plan") -> None:
    """Raise `RsyncNeededError` for root if `--numeric-ids` needs a number that the metadata lack.

    They name owners; only root's number is the same everywhere.
    """
    if os.geteuid() != 0 or not request.owner or not request.numeric_ids:
        return
    entries: list[Entry] = [*plan.directories]
    for stage in plan.stages:
        entries += [*stage.fetches, *stage.links, *stage.symlinks, *stage.attributes]
    for name in {name for entry in entries for name in (entry.owner, entry.group)}:
        if name != ROOT_OWNER and not name.startswith(b"#"):
            raise RsyncNeededError(f"--numeric-ids: the metadata have {show(name)} by name only")


def modes_of(request: RsyncRequest) -> Modes:
    """Return the `modes` that correspond to rsync's options."""
    if not request.perms:
        return Modes.LOCAL
    return Modes.PLAIN if request.plain_modes else Modes.EXACT


def why_not(request: RsyncRequest, rules: "tuple[Rule, ...]", module: Module, root: Path) -> str:
    """Return why huai cannot carry out `request`, by its filters, or an empty text."""
    differing = unlike_filter if request.delete else beyond_filter
    reason = differing(rules, module, root)
    return f"the filter rules are not those of the module: {reason}" if reason else ""


def check_in_part(state: State) -> None:
    """Raise `RsyncNeededError` if a call that does not delete cannot be part of a whole sync.

    The commits of such calls are kept until a whole sync ends, so their number is limited.
    """
    if state.applied is None:
        raise RsyncNeededError("no call with --delete has completed yet")
    if len(state.attempted) > _PARTS_MOST:
        raise RsyncNeededError("too many calls since the last one with --delete")
