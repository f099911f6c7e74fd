"""An upstream that changes and commits all the time, while a throttled sync runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from tests.support.background import background
from tests.support.upstream import Downstream, Site, Upstream, assert_equal

FILES = 40
SIZE = 50_000
KIB_PER_SECOND = 400
PACE = 1.0


@contextmanager
def busy(up: Upstream, *, delay: float) -> Iterator[list[int]]:
    """Change payload, an index and a pointer about every second; commit `delay` seconds later."""
    commits: list[int] = []

    def work(stop: threading.Event) -> None:
        for number in count():
            for index in (number % FILES, (7 * number) % FILES):
                up.put(b"pool/%d" % index, b"%d " % number * (SIZE // 10), mtime=None)
            if number:
                up.at(b"pool/extra%d" % (number - 1)).unlink()
            up.put(b"pool/extra%d" % number, b"extra", mtime=None)
            up.put(b"dists/sid/Packages", b"index %d" % number, mtime=None)
            up.put(b"dists/sid/InRelease", b"pointer %d" % number, mtime=None)
            stop.wait(delay)
            up.commit()
            commits.append(number)
            if stop.wait(PACE - delay):
                return

    with background(work):
        yield commits


def published(down: Downstream) -> tuple[bytes, bytes]:
    """Which change the index and the pointer are of."""
    folder = down.dest / "dists/sid"
    return (
        (folder / "Packages").read_bytes().split()[-1],
        (folder / "InRelease").read_bytes().split()[-1],
    )


@pytest.mark.parametrize("delay", [0.0, 0.4])
def test_a_busy_upstream_is_caught_up_with(place: Site, delay: float) -> None:
    up = place.upstream()
    up.many(b"pool", FILES, SIZE)
    up.put(b"dists/sid/Packages", b"index none")
    up.put(b"dists/sid/InRelease", b"pointer none")
    up.commit()
    down = place.downstream(up, bwlimit=KIB_PER_SECOND)
    with busy(up, delay=delay) as commits:
        ended = down.process("sync", "--json", down.name)
        moved = len(commits)
    assert ended.code == 0, ended
    result = ended.events("sync")[0]
    assert result["plans"] > 1
    assert moved > 1
    # What is there is one commit, wholly.
    assert down.verify("--content").code == 0
    assert len(set(published(down))) == 1
    assert down.state.attempted == ()
    down.synced()
    assert_equal(up, down)
