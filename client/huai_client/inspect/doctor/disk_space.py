"""How much room a file system has left.

Rule: little is less than a twentieth and less than 10 GiB; next to nothing is a failure.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from huai_client.humanize import human
from huai_client.inspect.doctor.finding import Finding, fail, ok, warn
from huai_schema.errors import ExitCode

_BYTES_LEAST = 16 << 20
_BYTES_LITTLE = 10 << 30
_INODES_LEAST = 100
_INODES_LITTLE = 100_000
_SHARE = 20


def room_findings(place: Path) -> Iterator[Finding]:
    """Bytes, for those who are not root, and inodes, where they are counted."""
    status = os.statvfs(place)
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    text = f"{place}: {human(free)} of {human(size)} are free"
    yield _judged(text, free, size, (_BYTES_LEAST, _BYTES_LITTLE))
    if status.f_files:
        text = f"{place}: {status.f_favail:,} of {status.f_files:,} inodes are free"
        yield _judged(text, status.f_favail, status.f_files, (_INODES_LEAST, _INODES_LITTLE))


def _judged(text: str, free: int, size: int, bounds: tuple[int, int]) -> Finding:
    least, little = bounds
    if free < least:
        return fail(text, "make room, or mirror less", ExitCode.NO_SPACE)
    if free < little and free * _SHARE < size:
        return warn(text, "make room before it is full")
    return ok(text)
