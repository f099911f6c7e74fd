"""Reading a whole tree: what is there now, directory by directory.

Follows no symlink and reads no content.  A path that cannot be read is reported, and never missing
without a word.
"""

from collections.abc import Iterator
from pathlib import Path

from huai_schema.paths import ROOT, show
from huai_server.scan import native
from huai_server.scan.types import ScanError, ScannedDirectory, ScanOptions, Unreadable


def scan(root: Path, options: ScanOptions | None = None) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, the first one being `root` itself (path "").

    A subdirectory that cannot be read is `Unreadable`; one that vanished meanwhile is absent.
    A root that cannot be read is a `ScanError`, raised when the first element is asked for.
    Closing the iterator early stops the scan.
    """
    return _check_root(root, native.scan(root, options or ScanOptions()))


def _check_root(
    root: Path, found: Iterator[ScannedDirectory | Unreadable]
) -> Iterator[ScannedDirectory | Unreadable]:
    first = next(found, None)
    if first is None or (isinstance(first, Unreadable) and first.path == ROOT):
        reason = "it vanished" if first is None else first.reason
        raise ScanError(
            f"cannot read the tree at {show(bytes(root))}: {reason}",
            hint="let the user that runs this command read it, or run it as another one",
        )
    yield first
    yield from found
