"""One directory as it stands in a manifest, and digest columns that are put together.

Pure text; knows nothing of git.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from huai_schema.codec.lines import count_files
from huai_schema.limits import DIGEST_BYTES

Column: TypeAlias = tuple[int, bytes]
"""How many regular files, and their digests; empty bytes: all absent."""


class Block(NamedTuple):
    """One directory inside a manifest."""

    relative: bytes
    """Escaped path from the manifest's own directory; empty for that directory."""
    attributes: bytes
    leaves: bytes
    digests: bytes

    @property
    def lines(self) -> int:
        """Entries, the directory included."""
        return 1 + self.leaves.count(b"\n")

    @property
    def files(self) -> int:
        """Regular files, which have a place in the digest column."""
        return count_files(self.leaves)

    def encode(self) -> bytes:
        """Its lines."""
        return b"%s/\t%s\n%s" % (self.relative or b".", self.attributes, self.leaves)


def join_digests(columns: Iterable[Column]) -> bytes:
    """One column for several texts; empty if there is no digest at all."""
    joined = b"".join(digests or bytes(DIGEST_BYTES * files) for files, digests in columns)
    return joined if joined.strip(b"\0") else b""
