"""The share of a module that is due to be read again.  Pure.

A round reads all files in tree order, spread over nine tenths of the period in which each must be
read again, so runs may be as far apart as the last tenth.  The progress of a round is a path and
some numbers, whatever the number of files.  A new file in the part already read was read since, for
its digest.
"""

from huai_server.store.scrub_record import Round

FILE_COST = 64 << 10
"""The bytes that can be read in the time that finding one file takes."""
EVERYTHING = 1 << 62


def due(current: Round, files: int, size: int, span: int, now: int) -> int:
    """Return the bytes to read now, of `size` bytes in `files`; each file has a fixed cost."""
    length, elapsed = _length(span), now - current.begun
    if elapsed >= length:
        return EVERYTHING
    share = cost(files, size) * max(0, elapsed) // length
    return max(0, share - cost(current.files, current.size))


def cost(files: int, size: int) -> int:
    """Return the cost of reading files, in bytes."""
    return size + FILE_COST * files


def following(current: Round, span: int | None, now: int) -> Round:
    """Return the round after a finished one; it begins when that one was planned to end."""
    length = _length(span) if span else 0
    planned = current.begun + length
    return Round(planned if planned > now - length else now)


def _length(span: int) -> int:
    return max(1, span * 9 // 10)
