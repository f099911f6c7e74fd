"""A disk on which there is no room for what comes and for what went."""

import os
from pathlib import Path

import pytest

from tests.support.upstream import T0, Downstream, Site, Upstream, rsync_differences

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")

MEGABYTE = 1 << 20


def renew(up: Upstream, number: int, megabytes: int = 3) -> None:
    up.put(b"large", os.urandom(megabytes * MEGABYTE), mtime=T0 + number)
    up.commit()


def serials(down: Downstream) -> list[int]:
    return sorted(int(path.name.split("-")[0]) for path in down.dest.glob(".~tmp~/huai-trash/*"))


def test_the_oldest_makes_room_if_that_is_enough(place: Site, disk: Path) -> None:
    up = place.upstream()
    renew(up, 1)
    down = place.downstream(up, dest=disk, trash="7d")
    down.synced()
    for number in (2, 3):
        renew(up, number)
        assert "leaves the trash" not in down.sync().err
    assert serials(down) == [1, 2]
    renew(up, 4, megabytes=2)
    ended = down.sync()
    assert ended.code == 0, ended
    assert ended.err.count("leaves the trash before its time") == 1
    assert serials(down) == [2, 3]
    assert rsync_differences(up, down) == ""
    assert down.run("undo", down.name).code == 0
    renew(up, 5, megabytes=20)
    assert down.sync("--unhold").code == 49
    assert 2 in serials(down), "thrown away for nothing"
