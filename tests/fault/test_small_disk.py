"""A disk that has room for a file once: what an interrupted transfer left is not in its own way."""

import os
from pathlib import Path

import pytest

from tests.fault.soaking import killed
from tests.support.processes import until
from tests.support.staged import bytes_in
from tests.support.upstream import Downstream, Site, Upstream, rsync_differences

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")

SIZE = 7 << 20
HALF = 4 << 20
"""With so much of it here, the whole file has no room beside it."""


def staged(down: Downstream) -> int:
    return bytes_in(down.dest.glob(".~tmp~/huai/*/**/*"))


@pytest.fixture(name="cut")
def cut_transfer(place: Site, disk: Path) -> tuple[Upstream, Downstream]:
    """More than half of the only file is staged, and nobody goes on with it."""
    up = place.upstream()
    up.put(b"day1.iso", os.urandom(SIZE))
    up.commit()
    down = place.downstream(up, dest=disk)
    process = down.spawn("sync", "--bwlimit", "3000", down.name)
    until(lambda: staged(down) > HALF)
    killed(process.pid, children=True)
    process.communicate()
    assert HALF < staged(down) < SIZE
    return up, down


def test_a_cut_transfer_goes_on_where_the_whole_file_has_no_room(
    cut: tuple[Upstream, Downstream],
) -> None:
    up, down = cut
    ended = down.sync()
    assert ended.code == 0, ended
    assert rsync_differences(up, down) == ""


def test_what_nobody_wants_any_more_makes_room(cut: tuple[Upstream, Downstream]) -> None:
    up, down = cut
    up.at(b"day1.iso").unlink()
    up.put(b"day2.iso", os.urandom(SIZE))
    up.commit()
    ended = down.sync()
    assert ended.code == 0, ended
    assert rsync_differences(up, down) == ""
