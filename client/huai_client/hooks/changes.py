"""The lists of changed paths for hooks, including the changes of an interrupted run.

`changes/planned/` has the paths that the plans of this run may change; it is on the disk before
anything is changed, and is deleted after `on_change`.  So it has all changes of a killed run, and
the next run reports them.  `changes/` itself has the completed changes.

Order of writes: a plan durable in `planned/`, the change to the tree, its path in `changes/`, the
hook, the deletion of all lists.  Rule to keep: a module without `on_change` has no such folder.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from huai_client.plan.operations import StepKind
from huai_client.plan.prepared import PreparedPlan
from huai_program.durable import replace_file, sync_folder
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath


class ListKind(StrEnum):
    """The kinds of the lists of changed paths that a hook gets."""

    WRITTEN = "written"
    DELETED = "deleted"
    ATTRIBUTES = "attributes"


_KINDS = {
    StepKind.CLEAR: ListKind.DELETED,
    StepKind.MAKE: ListKind.WRITTEN,
    StepKind.MOVE: ListKind.WRITTEN,
    StepKind.PUBLISH: ListKind.WRITTEN,
    StepKind.LINK: ListKind.WRITTEN,
    StepKind.SYMLINK: ListKind.WRITTEN,
    StepKind.ATTRIBUTES: ListKind.ATTRIBUTES,
    StepKind.REMOVE: ListKind.DELETED,
    StepKind.DIRECTORY: ListKind.ATTRIBUTES,
}


class ListError(HuaiError):
    """The lists cannot be written."""


_Line = tuple[ListKind, bytes]


class Changes:
    """A record of the changes of one run; the caller holds the module's lock."""

    def __init__(self, folder: Path, *, listed: bool) -> None:
        """Write lists if `listed`; otherwise only count changes."""
        self._folder = folder
        self._planned = folder / "planned"
        self._listed = listed
        self._lists: dict[ListKind, BinaryIO] = {}
        self._stack = ExitStack()
        self._moves: dict[RelPath, tuple[RelPath, bool]] = {}
        self._links: dict[RelPath, RelPath | None] = {}
        self._new_directories: set[RelPath] = set()
        self.counts = Counter[ListKind]()
        self.interrupted = False
        """True if the lists have possible changes of an earlier, interrupted run."""

    def begin(self) -> None:
        """Begin the lists with those of an interrupted run; if not `listed`, delete old lists.

        Their paths count as changes.  Raises `ListError` if the lists cannot be written, as
        `record_plan`, `record_step` and `close` do.
        """
        if not self._listed:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        with self._writing():
            self._planned.mkdir(mode=0o700, parents=True, exist_ok=True)
            for kind in ListKind:
                path = self._planned / kind
                left = _paths(path)
                replace_file(path, _lines(left), path.with_suffix(".new"), permissions=0o600)
                self.counts[kind] += len(left)
                self._lists[kind] = self._stack.enter_context(self.path(kind).open("wb"))
                self._lists[kind].write(_lines(left))
            self.interrupted = self.any

    @property
    def any(self) -> bool:
        """True if there are changes to report."""
        return self.counts.total() > 0

    def path(self, kind: ListKind) -> Path:
        """Return the file of a list."""
        return self._folder / kind

    def record_plan(self, prepared: PreparedPlan) -> None:
        """Record durably what a plan may change, if `listed`; call it before the first change."""
        plan = prepared.plan
        self._new_directories.update(plan.make)
        self._moves.update({each.new: (each.old, each.old in plan.forwards) for each in plan.moves})
        self._links.update({each.path: each.link for stage in plan.stages for each in stage.links})
        if not self._listed:
            return
        with self._writing(), ExitStack() as stack:
            files = {
                kind: stack.enter_context((self._planned / kind).open("ab")) for kind in ListKind
            }
            for step, entry in plan.steps():
                for kind, line in self._lines_of(step, entry.path):
                    files[kind].write(line + b"\0")
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._planned)

    def record_step(self, step: str, path: RelPath) -> None:
        """Count a change to the tree, and list it if `listed`; call it after each one.

        Raises `ListError` if the list cannot be written.
        """
        for kind, line in self._lines_of(StepKind(step), path):
            self.counts[kind] += 1
            if self._listed:
                with self._writing():
                    self._lists[kind].write(line + b"\0")

    def close(self) -> None:
        """Flush and close the lists, so that they can be read."""
        with self._writing():
            self._stack.close()

    def forget(self) -> None:
        """Delete the lists, because there were no changes or the hook has run."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an `OSError` of the block into a `ListError`."""
        try:
            yield
        except OSError as error:
            raise ListError(
                f"{self._folder}: {error.strerror}: the lists of changed paths cannot be written",
                hint="the next run passes the changes of this one to the hook on_change",
            ) from error

    def _lines_of(self, step: StepKind, path: RelPath) -> Iterator[_Line]:
        """Yield the lines for one step; a moved directory ends in `/`, and includes its content.

        No line for the final attributes of a new directory.  With a new hardlink, the old name is
        listed for its number of links.
        """
        if step is StepKind.MOVE and path in self._moves:
            old, forwarded = self._moves[path]
            yield ListKind.DELETED, old + b"/"
            yield ListKind.WRITTEN, path + b"/"
            if forwarded:
                yield ListKind.WRITTEN, old
        elif step is not StepKind.DIRECTORY or path not in self._new_directories:
            yield _KINDS[step], path or b"."
            if step is StepKind.LINK and (old_name := self._links.get(path)):
                yield ListKind.ATTRIBUTES, old_name


def _paths(path: Path) -> list[bytes]:
    """Read the paths of a list without duplicates; a truncated last one is dropped."""
    try:
        *paths, _ = path.read_bytes().split(b"\0")
    except FileNotFoundError:
        return []
    return [*dict.fromkeys(paths)]


def _lines(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
