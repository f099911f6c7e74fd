"""The export of a module as configured in server.toml or on the command line.

Holds the module's lock while it reads the configuration and writes, as a commit does.
"""

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from huai_program.configuration import ConfigError
from huai_program.locking import locked
from huai_schema.errors import FormatError, HuaiError
from huai_schema.paths import RelPath, rel_path
from huai_server.config.load import load
from huai_server.config.tables import Module, ModuleExport
from huai_server.export.export import (
    ExportPlan,
    ExportResult,
    Place,
    export,
    exported_files,
)
from huai_server.export.into_tree import ExportOfTree
from huai_server.export.source import Exported, ExportRequest
from huai_server.export.update import ExportUpdate
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces, module_places
from huai_server.store.module_state import committed_repository
from huai_server.store.repository import Head, metadata_errors


def plan_export(
    name: str, module: Module, *, folder: str | None = None, only: Sequence[str] = ()
) -> ExportPlan:
    """Return the plan for the export that a module's configuration describes.

    `folder` and `only`, if given, replace the configured folder and dialects; the plan's `exported`
    has the files of both.  Raises `ConfigError` for a path that is not valid.
    """
    configured = _request_of(name, module.export)
    place = _place(module, module.export.folder)
    files = set(exported_files(place, configured))
    request = replace(configured, dialects=tuple(only)) if only else configured
    if folder is not None:
        place = _place(module, folder)
    files.update(exported_files(place, request))
    return ExportPlan(place, request, Exported(tuple(files)))


def export_module(
    name: str,
    load_module: Callable[[], Module],
    places: ModulePlaces,
    *,
    folder: str | None = None,
    only: Sequence[str] = (),
    wait: float = 0,
) -> tuple[Head, ExportResult]:
    """Write the files of an export that differ, under the module's lock.

    `folder` and `only` are as for `plan_export`, whose errors are raised too.
    Returns the described commit and the result.  Raises `EmptyRootError` if they would be the only
    files of the tree, `NoCommitError`, `ExportError`, `FolderError`, and `LockedError` after `wait`
    seconds.
    """
    repository = committed_repository(name, places)
    with storage_errors(places.folder), metadata_errors(name), locked(places.lock, wait=wait):
        module = load_module()
        plan, tree = plan_export(name, module, folder=folder, only=only), Path(module.path)
        if plan.place.inside is not None and not holds_anything(tree):
            # The next commit would take the written files for the whole content.
            raise empty_root_error(tree, "--to writes to another folder")
        return export(repository, name, plan.place, plan.request, plan.exported)


def export_of_tree(name: str, module: Module) -> ExportOfTree | None:
    """Return the export into the tree that is committed; None if it goes to another folder."""
    plan = plan_export(name, module)
    return None if plan.place.inside is None else ExportOfTree(name, plan)


def export_after_commit(root: Path, name: str) -> ExportUpdate:
    """Write the export to a folder outside of the tree; does nothing if it goes into the tree.

    A `HuaiError` is returned in the result, not raised.
    """
    start = monotonic()

    def load_module() -> Module:
        return load(root).module(name)

    try:
        module = load_module()
        if _place(module, module.export.folder).inside is not None:
            return ExportUpdate()
        described, result = export_module(name, load_module, module_places(root, name))
    except HuaiError as error:
        return ExportUpdate(failure=error, seconds=monotonic() - start)
    return ExportUpdate(result, described, seconds=monotonic() - start)


def _request_of(name: str, table: ModuleExport) -> ExportRequest:
    """Return the request that the table `export` of server.toml describes.

    Without values there, `list_name` is the module's name, and `host` that of this machine.
    """
    return ExportRequest(
        dialects=table.files,
        list_name=table.list_name or name,
        host=table.host or socket.getfqdn(),
        upstream=table.upstream,
        heartbeat=table.heartbeat,
        sums=tuple(_configured_path("sums", path) for path in table.sums),
    )


def _place(module: Module, folder: str) -> Place:
    """Return the place of `folder`, an absolute path, or one relative to the tree.

    An absolute one is in the tree if it is below it, as spelt or resolved.  Raises `ConfigError`
    for a path in the tree that is not valid.
    """
    tree = os.fsencode(module.path)
    if not folder.startswith("/"):
        return Place(tree, _configured_path("folder", folder))
    path = os.path.normpath(os.fsencode(folder))
    for root, candidate in (
        (os.path.normpath(tree), path),
        (os.path.realpath(tree), os.path.realpath(path)),
    ):
        if candidate == root or candidate.startswith(root.rstrip(b"/") + b"/"):
            return Place(tree, _configured_path("folder", os.fsdecode(candidate[len(root) :])))
    return Place(tree, None, path)


def _configured_path(key: str, path: str) -> RelPath:
    """Return a path below the tree; raises `ConfigError` that names `key`."""
    try:
        return rel_path(os.fsencode(path.strip("/")))
    except FormatError as error:
        raise ConfigError(
            f"export: {key} = {path!r}: {error.reason}",
            hint="name a directory of the tree, without '.' and '..'",
        ) from None
