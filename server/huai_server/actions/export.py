"""The export of a module as server.toml and the command line want it: where to, and what of.

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
from huai_server.scan.root import empty_root, holds_anything
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, Repository, StoreError


class Plan(NamedTuple):
    """What an export is to do."""

    place: Place
    request: ExportRequest
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


@contextmanager
def _errors(name: str, place: Path) -> Iterator[None]:
    """What the disk refuses, and what is damaged in the repository, as errors that say so."""
    try:
        with storage_errors(place):
            yield
    except FormatError as error:
        raise StoreError(
            f"{name}: {error.message}",
            hint=f"run: huai-server check {name}, which names what is damaged",
        ) from error


def export_module(
    name: str, module: Module, places: ModulePlaces, plan: Plan, *, wait: float = 0
) -> tuple[Head, ExportResult]:
    """Write the files of an export; with the commit that they describe."""
    with _errors(name, Path(module.path)), locked(places.lock, wait=wait):
        tree = Path(module.path)
        if plan.place.inside is not None and not holds_anything(tree):
            # Else the next commit would take what is written here for all that there is.
            raise empty_root(tree, "--to writes to another folder")
        repository = Repository(places.repository)
        return export(repository, name, plan.place, plan.request, plan.exported)


class ExportOfTree:
    """The export into a tree that is being committed (`commit.TreeExport`)."""

    def __init__(self, name: str, plan: Plan) -> None:
        """Writes nothing yet."""
        self._name = name
        self._plan = plan
        self.update = ExportUpdate()

    def prepare(self) -> None:
        """Make the directories that the files need, so that they are scanned."""
        try:
            with _errors(self._name, Path(os.fsdecode(self._plan.place.tree))):
                make_directories(self._plan.place, self._plan.request)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error)

    @property
    def files(self) -> Collection[RelPath]:
        """All that exports write into the tree."""
        return self._plan.exported.files

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Write the files; whether the tree may have changed."""
        if self.update.failure:
            return False
        place, wanted, exported = self._plan
        tree = UncommittedTree(scanned, size, time, exported)
        try:
            with _errors(self._name, Path(os.fsdecode(place.tree))):
                found, result = export_scanned(repository, self._name, place, wanted, tree)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error)
            return True
        self.update = ExportUpdate(result, found)
        return result.changed


def export_after_commit(
    name: str, module: Module, places: ModulePlaces, plan: Plan
) -> ExportUpdate:
    """The export to a folder outside of the tree."""
    try:
        described, result = export_module(name, module, places, plan)
    except HuaiError as error:
        return ExportUpdate(failure=error)
    return ExportUpdate(result, described)


def _wanted(name: str, table: ModuleExport) -> ExportRequest:
    return ExportRequest(
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
