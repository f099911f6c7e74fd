"""A client is killed inside a bundle; the next one requests only the files that had not arrived."""

import os

from tests.support.upstream import T0, Downstream, Site, assert_equal

FILES, SIZE = 1000, 3000
SLOW = 200
"""KiB/s."""


def whole_files(down: Downstream) -> int:
    """How many files arrived: one gets its time last."""
    paths = (down.dest / ".~tmp~" / "huai").rglob("*")
    return sum(path.is_file() and path.stat().st_mtime_ns == T0 for path in paths)


def test_files_that_arrived_before_a_kill_are_not_requested_again(place: Site) -> None:
    up = place.upstream(serve_content=True)
    for number in range(FILES):
        up.put(b"%d/%d" % (number % 10, number), os.urandom(SIZE))
    up.commit()
    url = f"{place.url}/content/{up.name}/"
    down = place.downstream(up, content_urls=[url], bwlimit=SLOW)
    down.killed_once(lambda: whole_files(down) >= FILES // 10)
    arrived = whole_files(down)
    assert arrived < FILES
    down.configure(bwlimit=0)
    received = down.synced()["received"]
    assert (FILES - arrived) * SIZE < received < (FILES - arrived) * (SIZE + 100) + 10_000
    assert_equal(up, down)
