"""Bounds on what a decoder accepts (FORMAT.md, "Limits").

They are checked before the memory they guard is spent.  Raising one is a
compatible change for readers only; writers must stay within the published values.
"""

from huai_schema.errors import FormatError

NAME_BYTES = 255
"""One path component, unescaped (NAME_MAX of the file systems in use)."""

PATH_BYTES = 4095
"""A whole path relative to the module (PATH_MAX less its NUL; rsync's own bound)."""

TARGET_BYTES = 4095
"""A symlink's target, unescaped."""

LINE_BYTES = 65_536
"""One encoded line."""

MANIFEST_BYTES = 16 << 20
"""One manifest or piece: as many of the longest lines as one that is not cut may have."""

ENTRY_BYTES = 1024
"""Of manifests and columns for each announced entry, on average."""

LISTING_BYTES = 64 << 20
"""Of them beside that: in small snapshots a few lines may be as long as they like."""

OBJECT_BYTES = 64 << 20
"""One git object, inflated."""

ITEM_BYTES = 256
"""A name in a git tree: that of an entry, and a prefix."""

OWNER_BYTES = 255
"""An owner's or group's name, unescaped."""

MANIFEST_LINES = 16_384
"""Lines of one manifest blob."""

SIZE_MAX = (1 << 63) - 1
"""A file's size."""

MTIME_MAX = (1 << 63) - 1
"""Nanoseconds since the epoch, either sign."""

DIGEST_BYTES = 32
"""BLAKE3-256."""

TOTAL_ENTRIES = 1 << 32
"""Entries of one snapshot."""


class Quota:
    """An amount that is spent bit by bit; `FormatError` as soon as it is exceeded."""

    __slots__ = ("_left", "_reason")

    def __init__(self, amount: int, reason: str) -> None:
        """`reason` says which rule is broken by whoever spends more."""
        self._left = amount
        self._reason = reason

    def spend(self, amount: int, place: str = "") -> None:
        """Take `amount` away, before it is read or made; `place` is for the error."""
        self._left -= amount
        if self._left < 0:
            raise FormatError(self._reason, place)
