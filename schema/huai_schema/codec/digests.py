"""Digest columns that are put together: 32 bytes for each file, zeros where a digest is absent."""

from collections.abc import Iterable
from typing import TypeAlias

from huai_schema.limits import DIGEST_BYTES

Column: TypeAlias = tuple[int, bytes]
"""How many regular files, and their digests; empty bytes: all absent."""


def join_digests(columns: Iterable[Column]) -> bytes:
    """One column for several texts; empty if there is no digest at all."""
    joined = b"".join(digests or bytes(DIGEST_BYTES * files) for files, digests in columns)
    return joined if joined.strip(b"\0") else b""
