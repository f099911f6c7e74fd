"""The export of a module as server.toml and the command line want it: where to, and what of.

Holds the module's lock while it writes, as a commit does.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.paths import RelPath, rel_path
from huai_schema.program.configuration import ConfigError
from huai_schema.program.locking import locked
from huai_server.config import Module, ModuleExport
from huai_server.errors import storage_errors
from huai_server.export.export import ExportResult, Place, export, exported_files
from huai_server.export.source import Exported, Wanted
from huai_server.paths import ModulePlaces
from huai_server.store.repository import Repository


class Plan(NamedTuple):
    """What an export is to do."""

    place: Place
    wanted: Wanted
    exported: Exported
    """All files in the tree that are exported, also those that this export does not write."""


def plan_export(
    name: str, module: Module, *, folder: str | None = None, only: Sequence[str] = ()
) -> Plan:
    """The export that a module's configuration describes.

    `folder` and `only` replace the folder and the dialects of that.
    """
    configured = _wanted(name, module.export)
    place = _place(module, module.export.folder)
    files = set(exported_files(place, configured))
    wanted = replace(configured, dialects=tuple(only)) if only else configured
    if folder is not None:
        place = _place(module, folder)
    files.update(exported_files(place, wanted))
    return Plan(place, wanted, Exported(tuple(files)))


def export_module(
    name: str, module: Module, places: ModulePlaces, plan: Plan, *, wait: float = 0
) -> ExportResult:
    """Write the files of an export."""
    with storage_errors(Path(module.path)), locked(places.lock, wait=wait):
        repository = Repository(places.repository)
        return export(repository, name, plan.place, plan.wanted, plan.exported)


def _wanted(name: str, table: ModuleExport) -> Wanted:
    return Wanted(
        dialects=table.files,
        list_name=table.list_name or name,
        host=table.host or socket.getfqdn(),
        upstream=table.upstream,
        heartbeat=table.heartbeat,
        sums=tuple(_below("sums", path) for path in table.sums),
    )


def _place(module: Module, folder: str) -> Place:
    """A folder is in the tree if its path or what that leads to says so."""
    tree = os.fsencode(module.path)
    if not folder.startswith("/"):
        return Place(tree, _below("folder", folder))
    path = os.path.normpath(os.fsencode(folder))
    for root, given in (
        (os.path.normpath(tree), path),
        (os.path.realpath(tree), os.path.realpath(path)),
    ):
        if given == root or given.startswith(root.rstrip(b"/") + b"/"):
            return Place(tree, _below("folder", os.fsdecode(given[len(root) :])))
    return Place(tree, None, path)


def _below(key: str, path: str) -> RelPath:
    try:
        return rel_path(os.fsencode(path.strip("/")))
    except FormatError as error:
        raise ConfigError(
            f"export: {key} = {path!r}: {error.reason}",
            hint="name a directory of the tree, without '.' and '..'",
        ) from None
