"""Which share of a module is due to be read again.  Pure.

A round reads all files in tree order, spread over nine tenths of the span within which each has to
be read again: so runs may be as far apart as the tenth that is left.  How far a round has come is a
path and some numbers, whatever the number of files.  A file that is new in the part that was read
has been read since, for its digest.
"""

from huai_server.store.scrub_record import Round

FILE_COST = 64 << 10
"""Bytes that are read in the time that it takes to find one file."""
EVERYTHING = 1 << 62


def due(current: Round, files: int, size: int, span: int, now: int) -> int:
    """Bytes to read now, of a module of `files` of `size` bytes; a file costs some by itself."""
    length, elapsed = _length(span), now - current.begun
    if elapsed >= length:
        return EVERYTHING
    share = cost(files, size) * max(0, elapsed) // length
    return max(0, share - cost(current.files, current.size))


def cost(files: int, size: int) -> int:
    """What it costs to read files, in bytes."""
    return size + FILE_COST * files


def following(current: Round, span: int | None, now: int) -> Round:
    """The round after one that is at its end; it begins when that one was to end."""
    length = _length(span) if span else 0
    planned = current.begun + length
    return Round(planned if planned > now - length else now)


def _length(span: int) -> int:
    return max(1, span * 9 // 10)
