"""A large file that is changed where it stands, and a kill or a power cut in the middle of that.

The next run makes the new version of it, or it still is the old one: never a mix of both.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.transfer.staging import finish_patches
from huai_client.tree import View
from huai_schema.errors import ExitCode
from tests.fault.sampling import CUTS, LONG
from tests.fault.story import finish
from tests.support.crash_states import Moment, Recorder, crash_states, lay
from tests.support.nginx import nginx
from tests.support.reflinks import shares_blocks
from tests.support.system_calls import CHANGING, Call, Cut, supervise
from tests.support.upstream import T0, Downstream, Site, Upstream, refresh

BLOCK = 64 << 10
NAME = b"disk.img"
OLD = os.urandom(5 * BLOCK) + bytes(BLOCK) + os.urandom(BLOCK + 99)
NEW = OLD[BLOCK : 2 * BLOCK] + OLD[BLOCK : 3 * BLOCK] + bytes(BLOCK) + os.urandom(4 * BLOCK)
"""Moved, the same, zeros, and what has to come; shorter than before."""
POINTS = CUTS


@pytest.fixture(name="pair")
def upstream_and_downstream(place: Site) -> Iterator[tuple[Upstream, Downstream]]:
    up = place.upstream(block_index=128 << 10)
    up.put(NAME, OLD)
    up.put(b"other", b"old")
    with nginx(up.tree.parent) as web:
        url = f"{web.url}/{up.name}"
        down = place.synced_downstream(up, content_urls=(url,), in_place=["*.img"])
        up.put(NAME, NEW, mtime=T0 + 10**9)
        up.put(b"other", b"new content", mtime=T0 + 10**9)
        up.commit()
        yield up, down


def image(dest: Path) -> bytes:
    return (dest / os.fsdecode(NAME)).read_bytes()


def journals(dest: Path) -> int:
    return len([*dest.glob(".~tmp~/huai/patches/*.journal")])


def check(dest: Path) -> int:
    """It is one version or the other, at least once the journal is obeyed; how many there were."""
    found = journals(dest)
    if not found:
        assert image(dest) in (OLD, NEW)
    with View(dest) as view:
        finish_patches(view)
    assert image(dest) in (OLD, NEW)
    assert journals(dest) == 0
    return found


def sync(down: Downstream) -> int:
    return int(down.observed().exit_code)


class Record:
    """A sync, with the tree as it was before each of its changes."""

    def __init__(self, down: Downstream) -> None:
        self._count = Cut(0)
        self._numbers: list[int] = []
        with Recorder(down.dest) as self._recorder:
            assert supervise(CHANGING, lambda: sync(down), self._before).result == 0
        self.moments = self._recorder.moments

    def _before(self, call: Call) -> None:
        self._count(call)
        self._recorder.before(call)
        passed = [self._count.passed] * (len(self._recorder.moments) - len(self._numbers))
        self._numbers.extend(passed)

    @property
    def calls(self) -> int:
        """How many there were, elsewhere too."""
        return self._count.passed

    def in_the_middle(self) -> Iterator[tuple[int, Moment]]:
        """The moments at which there is a journal, with the number of the call that follows."""
        for number, moment in zip(self._numbers, self.moments, strict=True):
            (now, *_) = crash_states(moment)
            if any(path.endswith(".journal") for path in now.paths()):
                yield number, moment


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_kill_at_many_points(pair: tuple[Upstream, Downstream], tmp_path: Path) -> None:
    up, down = pair
    places = {down.dest: tmp_path / "dest", down.root: tmp_path / "root"}
    for path, copy in places.items():
        shutil.copytree(path, copy, symlinks=True)

    def restore() -> None:
        for path, copy in places.items():
            shutil.rmtree(path)
            shutil.copytree(copy, path, symlinks=True)

    restore()  # as it is for each cut
    record = Record(down)
    middle = [number for number, _ in record.in_the_middle()]
    everywhere = range(1, record.calls + 1)
    met = 0
    for point in [*everywhere[:: len(everywhere) // POINTS], *middle[:: 1 + len(middle) // POINTS]]:
        restore()
        assert supervise(CHANGING, lambda: sync(down), Cut(point)).killed
        met += check(down.dest) if point % 2 else journals(down.dest)
        finish(down, up)
        assert image(down.dest) == NEW
    assert met or shares_blocks(down.dest), "no cut was in the middle of it"


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_power_cut_at_any_moment(pair: tuple[Upstream, Downstream], tmp_path: Path) -> None:
    _, down = pair
    record = Record(down)
    met = 0
    laid = tmp_path / "laid"
    for moment in record.moments[:: max(1, len(record.moments) // (2 * POINTS))]:
        for state in crash_states(moment):
            refresh(laid)
            lay(state, laid)
            met += check(laid)
    assert met or shares_blocks(down.dest), "no moment was in the middle of it"
    assert image(down.dest) == NEW


@pytest.mark.slow
def test_a_disk_that_refuses_in_the_middle(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    refused: list[str] = []

    def decide(call: Call) -> int | None:
        if call.name == "truncate" and not refused and journals(down.dest):
            refused.append(call.name)
            return errno.ENOSPC
        return None

    ended = supervise(CHANGING, lambda: down.sync().code, decide)
    assert ended.result == (ExitCode.FILE_IO if refused else ExitCode.OK)
    assert refused or shares_blocks(down.dest)
    finish(down, up)
    assert image(down.dest) == NEW


def test_a_file_that_is_gone_is_left_alone(
    pair: tuple[Upstream, Downstream], tmp_path: Path
) -> None:
    """Whoever removed it, or put something else there, is not overruled."""
    up, down = pair
    record = Record(down)
    laid = tmp_path / "laid"
    middle = [*record.in_the_middle()]
    if not middle:
        assert shares_blocks(down.dest)
        return
    (state, *_) = crash_states(middle[0][1])
    place = laid / os.fsdecode(NAME)
    for stands in ("nothing", "symlink", "directory"):
        refresh(laid)
        lay(state, laid)
        place.unlink()
        if stands == "symlink":
            place.symlink_to(up.at(NAME))
        elif stands == "directory":
            place.mkdir()
        with View(laid) as view:
            finish_patches(view)
        assert journals(laid) == 0
        assert up.at(NAME).read_bytes() == NEW
