"""The engine's scans (`native/tree`), with the errors and reasons of huai.

Its threads read a bounded number of directories ahead.  Rule: `_REASONS` must match `_native.pyi`.
"""

import errno
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from huai_native._native import Scan
from huai_server.scan import exclude
from huai_server.scan.mounts import MOUNTED_OVER, NOT_ENTERED, NOT_MOUNTED
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import (
    CHANGED,
    DAMAGED,
    KEEPS_CHANGING,
    NO_RESULT,
    OTHER_VIEW,
    OUT_OF_RANGE,
    RESERVED,
    TEMPORARY,
    TIME,
    ScanError,
    ScanOptions,
    root_error,
    unreadable_root_error,
)

Directory: TypeAlias = tuple[
    bytes, bytes, bytes, bytes, bool, int, list[tuple[bytes, int]], int, int, int, int
]
_REASONS = {
    -1: KEEPS_CHANGING,
    -2: OUT_OF_RANGE,
    -3: TIME,
    -4: RESERVED,
    -5: TEMPORARY,
    -6: CHANGED,
    -7: DAMAGED,
    -8: NOT_ENTERED,
    -9: MOUNTED_OVER,
    -10: NOT_MOUNTED,
    -11: NO_RESULT,
    -12: OTHER_VIEW,
}


def scan_directories(
    root: Path, options: ScanOptions, *, links: bool = False
) -> Iterator[tuple[bytes, int] | Directory]:
    """Yield every directory below `root` in tree order, or path and reason of an unreadable one.

    A root that cannot be read is a `ScanError`, raised when the first element is asked for.
    Closing the iterator early stops the scan.  With `links` lines have their hardlink fields.
    """
    scanned = chain.from_iterable(_open_scan(root, options, links=links))
    try:
        first = next(scanned, None)
        if first is None or len(first) == 2:
            raise unreadable_root_error(root, reason_of(first[1]) if first else "it vanished")
        yield first
        yield from scanned
    except (MemoryError, OSError) as error:
        raise exhausted_error(error) from None


def _open_scan(root: Path, options: ScanOptions, *, links: bool) -> Scan:
    """Start a scan; an error if the root cannot be opened."""
    patterns = [exclude.check_exclude(text) for text in options.exclude]
    names = OwnerNames()
    try:
        return Scan(
            os.fsencode(root),
            (patterns, max(1, options.threads), options.one_file_system),
            (names.user, names.group) if options.owners else None,
            links=links,
        )
    except OSError as error:
        raise root_error(root, error) from None


def reason_of(number: int) -> str:
    """Return the words for a reason of the engine: an errno, or a negative number of its own."""
    return os.strerror(number) if number > 0 else _REASONS[number]


def exhausted_error(error: MemoryError | OSError) -> ScanError:
    """Return the error for a scan that memory or open files were not enough for."""
    reason = os.strerror(errno.ENOMEM) if isinstance(error, MemoryError) else error.strerror
    return ScanError(
        f"the scan ran out of memory or of open files ({reason})",
        hint="raise the limits of the process, or use fewer threads",
    )
