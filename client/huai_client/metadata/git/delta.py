"""Applying one of git's deltas to its base (gitformat-pack(5), "Deltified representation").

Pure.  Rule: no more memory than the result's announced and limited size is spent.
"""

from huai_schema.errors import FormatError
from huai_schema.limits import OBJECT_BYTES

_COPY = 0x80
_DEFAULT_COPY_BYTES = 0x10000
_OFFSET_BYTES = 4
_ARGUMENT_BYTES = 7
_SHIFT_MAX = 63


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """What `delta` makes of `base`; `FormatError` if it was not made for it."""
    try:
        needed, at = _length(delta, 0)
        size, at = _length(delta, at)
        if needed != len(base):
            raise FormatError("a delta for a base of another size")
        if size > OBJECT_BYTES:
            raise FormatError(f"an object of {size} bytes; {OBJECT_BYTES} are the limit")
        return _run(base, delta, at, size)
    except IndexError:
        raise FormatError("a delta that ends early") from None


def _run(base: bytes, delta: bytes, at: int, size: int) -> bytes:
    made = bytearray()  # not a list of parts: those may be a byte each
    left, end, base_size = size, len(delta), len(base)
    while at < end:
        code = delta[at]
        at += 1
        if code & _COPY:
            start = length = 0
            for argument in range(_ARGUMENT_BYTES):
                if code >> argument & 1:
                    if argument < _OFFSET_BYTES:
                        start |= delta[at] << 8 * argument
                    else:
                        length |= delta[at] << 8 * (argument - _OFFSET_BYTES)
                    at += 1
            length = length or _DEFAULT_COPY_BYTES
            if start + length > base_size:
                raise FormatError("a delta that copies from behind its base")
            made += base[start : start + length]
        else:
            length = code
            if not length or at + length > end:
                raise FormatError("a delta with an impossible instruction")
            made += delta[at : at + length]
            at += length
        left -= length
        if left < 0:
            break
    if left:
        raise FormatError("a delta that makes an object of another size than it says")
    return bytes(made)


def _length(delta: bytes, at: int) -> tuple[int, int]:
    """A little-endian number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = delta[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > _SHIFT_MAX:
            raise FormatError("a delta with an impossible length")
