"""The engine's digests against another implementation of BLAKE3."""

import os
from pathlib import Path
from random import Random

import pytest
from blake3 import blake3

from huai_native import _native

_KIB, _MIB = 1 << 10, 1 << 20
_SIZES = [
    *(0, 1, _KIB - 1, _KIB, _KIB + 1),
    *(256 * _KIB - 1, 256 * _KIB, 256 * _KIB + 1, 3 * _MIB + 5),
    # Hashed by several threads: all pieces are whole, one is short.
    *(64 * _MIB, 76 * _MIB + 1025),
]


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("threads", [1, 3])
def test_digest_of_a_file(tmp_path: Path, size: int, threads: int) -> None:
    content = Random(size).randbytes(min(size, _MIB)) * (size // _MIB + 1)
    path = tmp_path / "file"
    path.write_bytes(content[:size])
    handle = os.open(path, os.O_RDONLY)
    try:
        os.lseek(handle, 0, os.SEEK_END)  # it is read from its beginning, wherever it stands
        digest = _native.hash_file(handle, threads)
    finally:
        os.close(handle)
    assert digest == blake3(content[:size], max_threads=blake3.AUTO).digest()


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            _native.hash_file(handle, 1)
    finally:
        os.close(handle)
    with pytest.raises(FileNotFoundError):
        _native.hash_file(handle, 1)


def test_digest_of_pieces() -> None:
    pieces = [Random(number).randbytes(number * 100) for number in range(40)]
    hasher = _native.Blake3(pieces[0])
    for end, piece in enumerate(pieces[1:], 2):
        hasher.update(piece)
        assert hasher.digest() == blake3(b"".join(pieces[:end])).digest()
