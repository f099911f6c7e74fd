"""Deltas, the wrong ones above all."""

import tracemalloc

import pytest

from huai_client.metadata.git.delta import apply_delta
from huai_schema.errors import FormatError
from huai_schema.limits import OBJECT_BYTES
from tests.support.packs import copy, delta, insert, length

BASE = bytes(range(256)) * 300


def test_copies_and_inserts() -> None:
    made = delta(len(BASE), 13, copy(256, 5), insert(b"new"), copy(0, 5))
    assert apply_delta(BASE, made) == b"\0\1\2\3\4new\0\1\2\3\4"


def test_the_short_forms_of_a_copy() -> None:
    # A byte of the offset or of the size that is 0 is left out; a size of 0 is 64 KiB.
    assert apply_delta(BASE, delta(len(BASE), 2, b"\x91\x05\x02")) == b"\5\6"
    assert apply_delta(BASE, delta(len(BASE), 65_536, b"\x80")) == BASE[:65_536]
    assert apply_delta(BASE, delta(len(BASE), 1, b"\x92\x01\x01")) == BASE[256:257]


def test_nothing_from_nothing() -> None:
    assert apply_delta(b"", delta(0, 0)) == b""


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (b"", "ends early"),
        (b"\x80", "ends early"),
        (length(len(BASE)), "ends early"),
        (delta(len(BASE), 5, b"\x91"), "ends early"),
        (delta(len(BASE) - 1, 0), "another size"),
        (delta(len(BASE), 4, insert(b"abc")), "another size than it says"),
        (delta(len(BASE), 2, insert(b"abc")), "another size than it says"),
        (delta(len(BASE), 0, insert(b"abc")), "another size than it says"),
        (delta(len(BASE), 4, b"\x04abc"), "impossible instruction"),
        (delta(len(BASE), 4, b"\x00abc"), "impossible instruction"),
        (delta(len(BASE), 2, copy(len(BASE) - 1, 2)), "behind its base"),
        (delta(len(BASE), 2, copy(1 << 31, 2)), "behind its base"),
        (delta(len(BASE), OBJECT_BYTES + 1), "limit"),
        (b"\xff" * 12 + b"\1", "impossible length"),
    ],
)
def test_a_wrong_delta_is_refused(made: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        apply_delta(BASE, made)


def test_a_delta_that_goes_on_for_ever_is_stopped_at_its_size() -> None:
    # 64 KiB for each byte: 64 GiB if they were all followed.
    with pytest.raises(FormatError, match="another size than it says"):
        apply_delta(BASE, delta(len(BASE), 1000, b"\x80" * (1 << 20)))


def test_a_result_of_many_small_pieces_takes_no_more_memory_than_one_of_few() -> None:
    pieces = 300_000
    made = delta(len(BASE), 2 * pieces, *[b"\x02ab"] * pieces)
    tracemalloc.start()
    try:
        assert apply_delta(BASE, made) == b"ab" * pieces
        assert tracemalloc.get_traced_memory()[1] < 8 * pieces
    finally:
        tracemalloc.stop()
