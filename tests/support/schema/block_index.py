"""Block indices as docs/FORMAT.md defines them, written from that page and the paper on BLAKE3.

Slow, and shares nothing with the engine.
"""

import struct
import zlib
from collections.abc import Sequence

_WORDS = struct.Struct("<16I")
_VALUE = struct.Struct("<8I")
_IV = (
    *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
    *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
)
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_START, _END, _PARENT, _ROOT = 1, 2, 4, 8
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_CHUNK = 1024


def block_size(size: int) -> int:
    """Bytes of a block of a file of `size` bytes."""
    block = 65_536
    while -(-size // block) > (16_384 if block < 1_048_576 else 1_048_576):
        block *= 2
    return block


def block_index(content: bytes) -> bytes:
    """The index of a file with this content."""
    block = block_size(len(content))
    places = range(0, len(content), block)
    values = [_subtree(content[at : at + block], at // _CHUNK) for at in places]
    sums = [struct.pack(">I", zlib.crc32(content[at : at + block])) for at in places]
    return b"".join(values) + b"".join(sums)


def _top(values: Sequence[bytes]) -> bytes:
    if len(values) == 1:
        return values[0]
    left, right = _halves(values)
    return _parent(_top(left), _top(right), 0)


def _halves(parts: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The left one is the largest power of two that leaves something."""
    most = 1 << ((len(parts) - 1).bit_length() - 1)
    return parts[:most], parts[most:]


def _subtree(content: bytes, number: int) -> bytes:
    chunks = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
    return _top([_chunk(chunk, number + place) for place, chunk in enumerate(chunks)])


def _chunk(content: bytes, number: int) -> bytes:
    value = _VALUE.pack(*_IV)
    for at in range(0, len(content), 64):
        part = content[at : at + 64]
        flags = (_START if at == 0 else 0) | (_END if at + 64 >= len(content) else 0)
        value = _compress(value, part.ljust(64, b"\0"), number, len(part), flags)
    return value


def _parent(left: bytes, right: bytes, flags: int) -> bytes:
    return _compress(_VALUE.pack(*_IV), left + right, 0, 64, _PARENT | flags)


def _compress(value: bytes, block: bytes, number: int, length: int, flags: int) -> bytes:
    words = _WORDS.unpack(block)
    low, high = number & 0xFFFFFFFF, number >> 32
    state = [*_VALUE.unpack(value), *_IV[:4], low, high, length, flags]
    for _ in range(7):
        pairs = zip(words[::2], words[1::2], strict=True)
        for places in (*_COLUMNS, *_DIAGONALS):
            _mix(state, places, next(pairs))
        words = tuple(words[place] for place in _ORDER)
    return _VALUE.pack(*(state[place] ^ state[place + 8] for place in range(8)))


def _mix(state: list[int], places: tuple[int, int, int, int], pair: tuple[int, int]) -> None:
    a, b, c, d = places
    for word, (first, second) in zip(pair, ((16, 12), (8, 7)), strict=True):
        state[a] = (state[a] + state[b] + word) & 0xFFFFFFFF
        state[d] = _turned(state[d] ^ state[a], first)
        state[c] = (state[c] + state[d]) & 0xFFFFFFFF
        state[b] = _turned(state[b] ^ state[c], second)


def _turned(word: int, by: int) -> int:
    return (word >> by | word << (32 - by)) & 0xFFFFFFFF
