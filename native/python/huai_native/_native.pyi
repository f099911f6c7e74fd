from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, final

_Problem: TypeAlias = tuple[bytes, int]
"""A name (empty: the directory itself) and a reason."""
_Unreadable: TypeAlias = tuple[bytes, int]
"""Path and reason."""
_Directory: TypeAlias = tuple[bytes, bytes, bytes, bytes, bool, int, list[_Problem], int, int, int]
"""Path, attributes, leaves, identities, hardlinks, skipped, problems, unreadable, device, inode."""

@final
class Scan(Iterator[list[_Unreadable | _Directory]]):
    """A whole tree in tree order, in batches.

    A reason is an errno, or: -1 keeps changing, -2 size or time out of range, -3 too large, -4 the
    directory's time out of range, -5 a reserved name, -6 a temporary file of rsync.
    A root that cannot be opened, and whatever ends the scan, is an `OSError`.
    """

    def __new__(
        cls,
        root: bytes,
        patterns: Sequence[tuple[bytes, bool, bool]],
        *,
        threads: int,
        one_file_system: bool,
        owners: tuple[Callable[[int], bytes], Callable[[int], bytes]] | None,
    ) -> Scan:
        """`patterns`: glob, whether it is matched with the whole path, and with directories only.

        `owners` give the name of a user and of a group; None: everything belongs to root.
        """

    def __iter__(self) -> Scan: ...
    def __next__(self) -> list[_Unreadable | _Directory]: ...

@final
class Maker:
    """Does what records (`huai_server/fallback/attr/records.py`) say, below one directory.

    With a folder `building` on the same file system each entry is made there and renamed to its
    place, and directories keep their times; without one, entries are made in place and must not
    exist.  What fails is an `OSError` with the path seen from the root.
    """

    def __new__(cls, root: bytes, building: bytes | None, *, privileged: bool) -> Maker:
        """`privileged`: permissions do not matter to this process."""

    def apply(self, records: bytes) -> None:
        """Do all of it in order; a signal may end it between two records."""

    def leave(self) -> None:
        """The last directory that was entered gets its times back."""

    @property
    def unowned(self) -> int:
        """How many entries could not be given their owner."""
