"""A client is killed while it puts a large file together; the next one continues from there."""

import os
import re
from pathlib import Path

import pytest

from tests.support.nginx import Nginx, nginx
from tests.support.system_calls import CHANGING, KILL, Call, supervise
from tests.support.upstream import T0, Downstream, Site, Upstream, assert_equal

BLOCK = 64 << 10
BLOCKS = 64
NAME = b"image"
CONTENT = os.urandom(BLOCKS * BLOCK)
SLOW = "limit_rate 32k;"
"""One block comes in two seconds, over each connection."""
SLOWEST = "limit_rate 1k;"


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream(block_index=1 << 20)
    up.put(NAME, CONTENT)
    return up


def make_new(up: Upstream) -> bytes:
    """Every other block is another one."""
    new = bytearray(CONTENT)
    for at in range(0, len(new), 2 * BLOCK):
        new[at : at + BLOCK] = os.urandom(BLOCK)
    up.put(NAME, bytes(new), mtime=T0 + 10**9)
    up.commit()
    return bytes(new)


def count_new_blocks(down: Downstream, new: bytes) -> int:
    """How many of the new blocks came."""
    best = 0
    for path in (down.dest / ".~tmp~" / "huai").rglob("*"):
        if path.is_file() and path.stat().st_size == len(new):
            content = path.read_bytes()
            places = range(0, len(new), 2 * BLOCK)
            same = (content[at : at + BLOCK] == new[at : at + BLOCK] for at in places)
            best = max(best, sum(same))
    return best


def count_requested_bytes(web: Nginx) -> int:
    """Bytes that were asked for, whether they were sent or not."""
    ranges = re.findall(r'"bytes=(\d+)-(\d+)"', "\n".join(web.requests))
    return sum(int(end) - int(begin) + 1 for begin, end in ranges)


def assert_goes_on(up: Upstream, down: Downstream, new: bytes) -> None:
    """The old file stands, and the next sync asks for no block that came."""
    assert (down.dest / os.fsdecode(NAME)).read_bytes() == CONTENT
    received = count_new_blocks(down, new)
    with nginx(up.tree.parent) as fast:
        down.configure(content_urls=(f"{fast.url}/{up.name}",))
        down.synced()
        assert count_requested_bytes(fast) == (BLOCKS // 2 - received) * BLOCK
    assert_equal(up, down)


def test_what_came_before_a_kill_is_not_asked_for_again(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    new = make_new(up)
    with nginx(up.tree.parent, location=SLOW) as slow:
        down.configure(content_urls=(f"{slow.url}/{up.name}",))
        down.killed_once(lambda: count_new_blocks(down, new) >= BLOCKS // 8)
    assert_goes_on(up, down, new)


def test_a_sync_that_runs_out_of_time_keeps_what_came(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    new = make_new(up)
    with nginx(up.tree.parent, location=SLOWEST) as slow:
        down.configure(content_urls=(f"{slow.url}/{up.name}",))
        ended = down.sync("--max-time", "3")
    assert ended.code == 30, ended
    assert_goes_on(up, down, new)


@pytest.mark.parametrize("in_place", [(), ("*",)])
def test_a_file_that_was_whole_is_not_made_again(
    up: Upstream, place: Site, in_place: tuple[str, ...]
) -> None:
    """The run is killed before it publishes anything; so it is if it was to change it in place."""
    down = place.synced_downstream(up)
    make_new(up)

    def decide(call: Call) -> int | None:
        if call.name != "sync":
            return None
        synced = Path(os.readlink(f"/proc/{call.thread}/fd/{call.arguments[0]}"))
        patched = any(down.dest.glob(".~tmp~/huai/patches/*"))
        return KILL if patched or synced.is_relative_to(down.dest / ".~tmp~") else None

    with nginx(up.tree.parent) as web:
        down.configure(content_urls=(f"{web.url}/{up.name}",), in_place=[*in_place])
        assert supervise(CHANGING, down.observed, decide).killed
        first = count_requested_bytes(web)
        assert first == BLOCKS // 2 * BLOCK
        down.synced()
        assert count_requested_bytes(web) == first
    assert_equal(up, down)
