"""The size that tunasync reads from a run by its own patterns, and none after a failure."""

import re

import pytest

from tests.support.upstream import Downstream, Pair, Site

# tunasync, internal/util.go: the last match in the log of the job counts.
RSYNC_PROVIDER = re.compile(r"(?m)^Total file size: ([0-9\.]+[KMGTP]?) bytes")
COMMAND_PROVIDER = re.compile(r"Total size is ([0-9\.]+[KMGTP]?)")
SIZE = 123_457


@pytest.fixture
def pair(place: Site) -> Pair:
    up = place.upstream()
    up.put(b"large", b"x" * (SIZE - 7))
    up.put(b"small", b"content")
    up.commit()
    return up, place.downstream(up)


def sizes(down: Downstream) -> list[str | None]:
    """Return the size that each pattern of tunasync finds in both streams, read as one log."""
    ended = down.sync()
    matches_of = [
        pattern.findall(ended.out + ended.err) for pattern in (RSYNC_PROVIDER, COMMAND_PROVIDER)
    ]
    return [matches[-1] if matches else None for matches in matches_of]


def test_the_size_is_told_whatever_there_was_to_do(pair: Pair) -> None:
    up, down = pair
    assert sizes(down) == [str(SIZE)] * 2
    assert sizes(down) == [str(SIZE)] * 2  # nothing new
    up.put(b"more", b"1234")
    up.commit()
    assert sizes(down) == [str(SIZE + 4)] * 2
    up.at(b"large").unlink()
    up.commit()
    assert sizes(down) == ["11"] * 2


def test_no_size_is_told_after_a_failure(pair: Pair) -> None:
    up, down = pair
    up.at(b"large").unlink()  # committed, and gone when the content is fetched
    assert sizes(down) == [None, None]


def test_the_module_can_be_called_as_tunasync_calls_it(pair: Pair) -> None:
    up, down = pair
    variables = {"TUNASYNC_MIRROR_NAME": up.name, "HUAI_CLIENT_ROOT": str(down.root)}
    ended = down.process("sync", up.name, environment=variables)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[-2:] == [f"Total file size: {SIZE} bytes", f"Total size is {SIZE}"]
