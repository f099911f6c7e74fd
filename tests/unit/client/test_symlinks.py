"""Symlinks that lead out of the tree."""

import pytest

from huai_client.symlinks import leads_out
from tests.local_trees import at


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"l", b"/etc"),
        (b"l", b".."),
        (b"l", b"a/../.."),
        (b"d/l", b"../../x"),
        (b"d/l", b"../..//d"),
        (b"d/l", b"./../../d"),
    ],
)
def test_out(path: bytes, target: bytes) -> None:
    assert leads_out(at(path), target)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"l", b"a"),
        (b"l", b"..."),
        (b"l", b"a/../b"),
        (b"d/l", b".."),
        (b"d/l", b"../x"),
        (b"d/e/l", b"../../x"),
        (b"l", b""),
    ],
)
def test_in(path: bytes, target: bytes) -> None:
    assert not leads_out(at(path), target)
