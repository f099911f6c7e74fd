"""`ls-lR.gz`: what `ls -lR` says, as Debian's and GNU's mirrors have it.

The bytes follow from the commit alone: gzip's header has neither a time nor a name.
"""

import zlib
from collections.abc import Iterator

from huai_native._native import Ls
from huai_schema.paths import RelPath
from huai_server.export.source import Source, Wanted

_PATH = RelPath(b"ls-lR.gz")
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6


def paths(_: Wanted) -> tuple[RelPath, ...]:
    """The one file."""
    return (_PATH,)


def texts(source: Source, _: Wanted) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """The one file."""
    yield _PATH, _compressed(source)


def _compressed(source: Source) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    listing = Ls(source.lent, source.own)
    while part := listing.part():
        yield packer.compress(part)
    yield packer.flush()
