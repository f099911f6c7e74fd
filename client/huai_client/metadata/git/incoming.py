"""A pack that is received: written under a temporary name, then installed by the engine.

Writes below `objects/pack` of a repository, under names that git ignores until the last
two renames, the index last.  Rule: only one fetch works in a repository at a time, with the
module's lock held, so the files that an earlier one left may be removed.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from huai_client.metadata.git.limits import HELD_BYTES, NAMING_BYTES, REPLY_BYTES, WorkLimit
from huai_client.metadata.git.objects import Objects
from huai_native._native import install_pack
from huai_program.packs import TEMPORARY, remove_unfinished
from huai_schema.errors import FormatError

# Without suffixes: git opens every file that ends in `.idx`.
_NAME = f"{TEMPORARY}pack"


class IncomingPack:
    """A pack being received, as a context manager; it is removed unless it was installed."""

    def __init__(self, folder: Path) -> None:
        """Make `folder`, `objects/pack`, and remove files that a killed run left there."""
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        self._folder = folder
        self._path = folder / _NAME
        self._file = self._path.open("xb", buffering=1 << 20)
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove a pack that was not installed."""
        with suppress(OSError):  # a full disk: the buffered rest is not needed
            self._file.close()
        remove_unfinished(self._folder)

    def write(self, data: bytes) -> None:
        """Write the next bytes of the pack, as received.

        Raises `FormatError` if it is too large.
        """
        self._size += len(data)
        if self._size > REPLY_BYTES:
            raise FormatError(f"a pack of more than {REPLY_BYTES} bytes", "the upstream's reply")
        self._file.write(data)

    def install(
        self, objects: Objects, work: WorkLimit, target: tuple[bytes, list[bytes]] | None = None
    ) -> tuple[Path | None, bytes]:
        """Check the pack, add the local bases of its deltas, and make it durable and visible.

        `target`: the id of a commit all of whose objects must be here then, and trees that are
        complete.  Returns the path of the pack, None if it adds no file, and the commit's content.
        Raises `FormatError` for a pack that is empty, malformed or above a limit of `work`, and
        `MissingObjectError` if an object is missing.
        """
        self._file.flush()
        if not self._size:
            raise FormatError("a reply without a pack", "the upstream's reply")
        work.allow(self._size)
        work.check()
        name, commit, spent = install_pack(
            os.fsencode(self._folder),
            os.fsencode(_NAME),
            objects,
            work.check,
            target=target,
            work=work.left,
            room=(HELD_BYTES, NAMING_BYTES),
        )
        work.left -= spent
        return (self._folder / f"{os.fsdecode(name)}.pack" if name else None), commit
