"""The files that are exported into the tree, and must be in the commit that they describe."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.export.export import ExportPlan, UncommittedTree, export_scanned, make_directories
from huai_server.export.update import ExportUpdate
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Repository, metadata_errors


class ExportOfTree:
    """The export into a tree that is being committed; the commit has its files as well."""

    def __init__(self, name: str, plan: ExportPlan) -> None:
        self._name = name
        self._plan = plan
        self.update = ExportUpdate()
        """The result so far, or the error."""

    def prepare(self) -> None:
        """Make the directories of the files, to be scanned too; an error goes into `update`."""
        try:
            with self._errors():
                make_directories(self._plan.place, self._plan.request)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert `OSError` and `FormatError` of the block to errors that name tree and module."""
        tree = Path(os.fsdecode(self._plan.place.tree))
        with storage_errors(tree), metadata_errors(self._name):
            yield

    @property
    def files(self) -> Collection[RelPath]:
        """Return all files that exports write into the tree."""
        return self._plan.exported.files

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Write the files, unless `prepare` failed; an error goes into `update`.

        Returns True if the tree may have changed.  `size` is the bytes of all `scanned` files;
        `time`, that of the commit, is in seconds since the epoch.
        """
        if self.update.failure:
            return False
        place, request, exported = self._plan
        source, start = UncommittedTree(scanned, size, time, exported), monotonic()
        try:
            with self._errors():
                described, result = export_scanned(repository, self._name, place, request, source)
        except HuaiError as error:
            self.update = ExportUpdate(failure=error, seconds=monotonic() - start)
            return True
        self.update = ExportUpdate(result, described, seconds=monotonic() - start)
        return result.changed
