"""The newest commit of a module, cached as far as it was read, to look up its files.

It reads the repository, so call it in threads.
"""

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.entries import File
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath
from huai_server.store.repository import Repository, read_branch

if TYPE_CHECKING:
    from huai_schema.codec.descriptor import Descriptor
    from huai_schema.layout.snapshot import Snapshot


class NewestFile(NamedTuple):
    """A file of the newest commit."""

    file: File
    descriptor: "Descriptor"


class Newest:
    """The newest commit of one module; one thread at a time reads it."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._state: str | None = None
        self._commit: tuple[Descriptor, Snapshot] | None = None
        self._turn = Lock()

    def find(self, path: RelPath) -> NewestFile | None:
        """Return the newest commit's regular file at `path`, or None without one.

        Raises `HuaiError` if metadata are damaged.
        """
        with self._turn:
            self._refresh()
            if self._commit is None:
                return None
            descriptor, snapshot = self._commit
            try:
                leaf = snapshot.leaf(path)
            except HuaiError:
                self._state = None  # a damaged object may be restored
                raise
        return NewestFile(leaf, descriptor) if isinstance(leaf, File) else None

    def snapshot(self) -> "Snapshot | None":
        """Return the snapshot of the newest commit, or None before the first one.

        Raises `HuaiError` if metadata are damaged.
        """
        with self._turn:
            self._refresh()
            return self._commit and self._commit[1]

    def _refresh(self) -> None:
        """Read the newest commit if the branch has moved, or cannot be read."""
        state = read_branch(self._repository)
        if state is None or state != self._state:
            self._read()

    def _read(self) -> None:
        """Cache the newest commit, if there is one; after an error, nothing is cached."""
        self._state = self._commit = None
        if not self._repository.exists():
            return
        store = Repository(self._repository)
        head = store.head()
        if head is not None:
            self._commit = store.snapshot(head)
            self._state = head.commit
