"""A sync over HTTP that is killed in the middle: the next one continues from there."""

import os
from pathlib import Path

from tests.fault.soaking import killed
from tests.support.nginx import nginx
from tests.support.processes import until
from tests.support.staged import bytes_in
from tests.support.upstream import T0, Downstream, Site, assert_equal

SIZE = 8 << 20
SLOW = "limit_rate_after 2m; limit_rate 300k;"


def staged(down: Downstream) -> int:
    return bytes_in(down.dest.glob(".~tmp~/huai/*/**/*"))


def timed(down: Downstream) -> list[Path]:
    """The small files that are whole: they have their time."""
    paths = down.dest.glob(".~tmp~/huai/incoming/*/small/*")
    return [path for path in paths if path.stat().st_mtime_ns == T0]


def test_a_killed_sync_asks_for_the_rest_only(place: Site) -> None:
    up = place.upstream()
    up.put(b"d/large.iso", os.urandom(SIZE))
    up.many(b"small", 50)
    up.commit()
    with nginx(up.tree, location=SLOW) as server:
        down = place.downstream(up, content_urls=(server.url,))
        process = down.spawn("sync", down.name)
        until(lambda: staged(down) > 2 << 20 and len(timed(down)) == 50)
        killed(process.pid, children=True)
        process.communicate()
        staged_bytes = staged(down)
    assert staged_bytes < SIZE
    with nginx(up.tree) as server:
        down.configure(content_urls=(server.url,))
        assert down.sync().code == 0
        (line,) = [each for each in server.requests if each.endswith("large.iso")]
        assert not [each for each in server.requests if "/small/" in each]
    status, byte_range, sent_bytes = line.split()[1:4]
    assert status == "206"
    first = int(byte_range.strip('"').removeprefix("bytes=").partition("-")[0])
    assert first > 1 << 20
    assert int(sent_bytes) == SIZE - first
    assert_equal(up, down)
