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
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.config.load import Module
from huai_client.config.modes import Modes
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.filters import beyond_filter, unlike_filter
from huai_client.huai_rsync.request import RsyncRequest
from huai_client.state.state import State
from huai_schema.entries import ROOT_OWNER
from huai_schema.paths import show

if TYPE_CHECKING:
    from huai_client.filters import Rule
    from huai_client.plan.operations import Plan
    from huai_schema.entries import Entry

_PARTS_MOST = 8


def check_owners(request: RsyncRequest) -> None:
    """Raise `RsyncNeededError` if owner is kept without group, or group without owner."""
    if os.geteuid() != 0:
        return
    if request.owner != request.group:
        raise RsyncNeededError("only one of owner and group is kept")


def check_numbers(request: RsyncRequest, plan: "Plan") -> None:
    """Raise `RsyncNeededError` if `--numeric-ids` needs a number that is not in the metadata.

    The metadata name owners; only root's number is the same everywhere.
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
        raise RsyncNeededError("without --delete, before the first complete call with it")
    if len(state.attempted) > _PARTS_MOST:
        raise RsyncNeededError("without --delete, as too many calls before")
