"""The export of a module as configured in server.toml or on the command line.

Holds the module's lock while it writes, as a commit does.
"""

import os
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from huai_program.configuration import ConfigError
from huai_program.locking import locked
from huai_schema.errors import FormatError, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, rel_path
from huai_server.config.tables import Module, ModuleExport
from huai_server.export.export import (
    ExportResult,
    Place,
    UncommittedTree,
    export,
    export_scanned,
    exported_files,
    make_directories,
)
from huai_server.export.source import Exported, ExportRequest
from huai_server.export.update import ExportUpdate
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, Repository, StoreError


class ExportPlan(NamedTuple):
    """The place and the content of an export."""

    place: Place
    request: ExportRequest
    exported: Exported
    """All exported files in the tree, including those that this export does not write."""


def plan_export(
    name: str, module: Module, *, folder: str | None = None, only: Sequence[str] = ()
) -> ExportPlan:
    """Return the export that a module's configuration describes.

    `folder` and `only` replace the configured folder and dialects.
    """
    configured = _request_of(name, module.export)
    place = _place(module, module.export.folder)
    files = set(exported_files(place, configured))
    request = replace(configured, dialects=tuple(only)) if only else configured
    if folder is not None:
        place = _place(module, folder)
    files.update(exported_files(place, request))
    return ExportPlan(place, request, Exported(tuple(files)))


@contextmanager
def _export_errors(name: str, place: Path) -> Iterator[None]:
    """Convert errors of the disk to `StorageError`, those of the repository to `StoreError`."""
    try:
        with storage_errors(place):
            yield
    except FormatError as error:
        raise StoreError(
            f"{name}: {error.message}",
            hint=f"run: huai-server check {name}, which names what is damaged",
        ) from error


def export_module(
    name: str, module: Module, places: ModulePlaces, plan: ExportPlan, *, wait: float = 0
) -> tuple[Head, ExportResult]:
    """Write the files of an export, under the module's lock; return the described commit too."""
    with _export_errors(name, Path(module.path)), locked(places.lock, wait=wait):
        tree = Path(module.path)
        if plan.place.inside is not None and not holds_anything(tree):
            # The next commit would take the written files for the whole content.
            raise empty_root_error(tree, "--to writes to another folder")
        repository = Repository(places.repository)
        return export(repository, name, plan.place, plan.request, plan.exported)


class ExportOfTree:
    """The export into a tree that is being committed (`commit.TreeExport`)."""

    def __init__(self, name: str, plan: ExportPlan) -> None:
        self._name = name
        self._plan = plan
        self.update = ExportUpdate()
        """The result so far, or the error."""

    def prepare(self) -> None:
        """Make the directories of the files, to be scanned too; an error goes into `update`."""
        try:
            with _export_errors(self._name, Path(os.fsdecode(self._plan.place.tree))):
                make_directories(self._plan.place, self._plan.request)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error)

    @property
    def files(self) -> Collection[RelPath]:
        """Return all files that exports write into the tree."""
        return self._plan.exported.files

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Write the files, unless `prepare` failed; True if the tree may have changed."""
        if self.update.failure:
            return False
        place, request, exported = self._plan
        source = UncommittedTree(scanned, size, time, exported)
        try:
            with _export_errors(self._name, Path(os.fsdecode(place.tree))):
                described, result = export_scanned(repository, self._name, place, request, source)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error)
            return True
        self.update = ExportUpdate(result, described)
        return result.changed


def export_after_commit(
    name: str, module: Module, places: ModulePlaces, plan: ExportPlan
) -> ExportUpdate:
    """Export to a folder outside of the tree; an error becomes part of the result."""
    try:
        described, result = export_module(name, module, places, plan)
    except HuaiError as error:
        return ExportUpdate(failure=error)
    return ExportUpdate(result, described)


def _request_of(name: str, table: ModuleExport) -> ExportRequest:
    return ExportRequest(
        dialects=table.files,
        list_name=table.list_name or name,
        host=table.host or socket.getfqdn(),
        upstream=table.upstream,
        heartbeat=table.heartbeat,
        sums=tuple(_configured_path("sums", path) for path in table.sums),
    )


def _place(module: Module, folder: str) -> Place:
    """Return the place of a folder, inside the tree if its path or the resolved path is."""
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
