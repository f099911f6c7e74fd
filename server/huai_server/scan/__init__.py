"""Reading a whole tree: what is there now, directory by directory.

Follows no symlink and reads no content.  A path that cannot be read is reported, and never missing
without a word.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from huai_schema.paths import show
from huai_server.scan import native
from huai_server.scan.types import (
    ScanError,
    Scanned,
    ScannedDirectory,
    ScanOptions,
    Unreadable,
)


def scan(root: Path, options: ScanOptions | None = None) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, the first one being `root` itself (path "").

    A subdirectory that cannot be read is `Unreadable`; one that vanished meanwhile is absent.
    A root that cannot be read is a `ScanError`, raised when the first element is asked for.
    Closing the iterator early stops the scan.
    """
    found = native.scan(root, options or ScanOptions())
    yield _root(root, next(found, None))
    yield from found


def scan_runs(root: Path, options: ScanOptions, watched: Collection[bytes]) -> Scanned:
    """The same, but directories about which nothing has to be decided come together.

    A large directory comes in parts.  The root, another file system, and each path that is
    `watched` come one by one, with all below.
    """
    found = native.scan_runs(root, options, watched)
    yield _root(root, next(found, None))
    yield from found


def _root(root: Path, first: object) -> ScannedDirectory:
    if isinstance(first, ScannedDirectory):
        return first
    reason = first.reason if isinstance(first, Unreadable) else "it vanished"
    raise ScanError(
        f"cannot read the tree at {show(bytes(root))}: {reason}",
        hint="let the user that runs this command read it, or run it as another one",
    )
