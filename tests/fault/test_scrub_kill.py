"""A `digest` or a `scrub` that is killed before its system calls, or refused one, loses nothing."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.commit import later, scrub
from huai_server.commit.later import digest_tree
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.scrub import scrub_tree
from huai_server.store.scrub_record import Damage, Round, ScrubRecord, read_record, write_record
from tests.support.committing import NAME, Upstream, fsck
from tests.support.system_calls import CHANGING, Cut, supervise

FILES = 12
CUTS_MAX = 8
ALL = ReadLimits()
ROTTEN = ("d0/f3", "d1/f7")
BEGUN = 1_000_000_000


@pytest.fixture
def upstream(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """Files that take several batches."""
    monkeypatch.setattr(later, "_BATCH", 5)
    monkeypatch.setattr(scrub, "_FILES", 5)
    found = Upstream(short_path)
    for number in range(FILES):
        found.write(f"d{number % 3}/f{number}", f"content {number}", mtime=1_000 + number)
    return found


def ended(work: Callable[[], object]) -> str:
    """What came of it, in a word."""
    try:
        work()
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    return "done"


class Digesting:
    """Adds the digests that a commit left out."""

    def __init__(self, upstream: Upstream) -> None:
        upstream.commit()
        self.upstream = upstream
        self.tree = upstream.entries_id
        shutil.copytree(upstream.root, upstream.root.with_name("whole"))
        shutil.rmtree(upstream.root)
        upstream.configure(digest="later")
        upstream.commit()
        self._before = upstream.entries_id

    def run(self) -> str:
        return ended(lambda: digest_tree(NAME, self.upstream.module, self.upstream.places, ALL))

    def prove(self, context: object) -> None:
        """The last commit or the next one, sound; and the next run does the rest."""
        upstream = self.upstream
        assert upstream.entries_id in (self._before, self.tree), context
        assert upstream.check().faults == (), context
        fsck(upstream.places.repository)
        assert self.run() == "done", context
        assert upstream.entries_id == self.tree, context
        assert digest_tree(NAME, upstream.module, upstream.places, ALL).changed is False


class Scrubbing:
    """Finds two damaged files, and that a third one is not any more."""

    def __init__(self, upstream: Upstream) -> None:
        upstream.commit()
        self.upstream = upstream
        self._damage = self._rot(*ROTTEN)
        former = self._rot("d2/f5")[0]
        upstream.write("d2/f5", "content 5", mtime=1_005)
        write_record(upstream.places.scrub, ScrubRecord(Round(BEGUN), None, (former,)))
        self._head = upstream.head.commit

    def _rot(self, *paths: str) -> tuple[Damage, ...]:
        upstream = self.upstream
        for path in paths:
            place = upstream.tree / path
            status = place.stat()
            place.write_bytes(b"?" * status.st_size)
            os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True)
        record = read_record(upstream.places.scrub)
        upstream.places.scrub.unlink()
        return tuple(each for each in record.damage if os.fsdecode(each.path) in paths)

    def run(self) -> str:
        upstream = self.upstream
        return ended(lambda: scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True))

    def prove(self, context: object) -> None:
        """The record is one that a run wrote; no commit was touched; the next run goes on."""
        upstream, wanted = self.upstream, {os.fsencode(path) for path in ROTTEN}
        record = read_record(upstream.places.scrub)
        assert record.current, context
        known = {each.path for each in record.damage}
        assert known <= wanted | {b"d2/f5"}, context
        passed = record.current.files
        result = scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True)
        assert {each.path for each in result.record.damage} == wanted, context
        # Nothing is read twice but one batch, unless the round was at its end.
        assert result.files == FILES - (0 if record.finished else passed), context
        assert upstream.head.commit == self._head, context


@pytest.fixture(params=[Digesting, Scrubbing])
def work(request: pytest.FixtureRequest, upstream: Upstream) -> Digesting | Scrubbing:
    found: Digesting | Scrubbing = request.param(upstream)
    shutil.copytree(upstream.root, upstream.root.with_name("saved"), symlinks=True)
    return found


def reset(work: Digesting | Scrubbing) -> None:
    root = work.upstream.root
    shutil.rmtree(root)
    shutil.copytree(root.with_name("saved"), root, symlinks=True)


def points(work: Digesting | Scrubbing) -> Sequence[int]:
    """Numbers of its calls, as many as cuts are wanted, evenly, and the last."""
    counting = Cut(0)
    outcome = supervise(CHANGING, work.run, counting)
    assert outcome.result == "done"
    assert counting.passed > 8, outcome.calls
    every = -(-counting.passed // CUTS_MAX)
    return [*range(1, counting.passed, every), counting.passed]


@pytest.mark.slow
def test_a_kill_before_its_system_calls(work: Digesting | Scrubbing) -> None:
    killed = 0
    for point in points(work):
        reset(work)
        outcome = supervise(CHANGING, work.run, Cut(point))
        killed += outcome.killed
        work.prove((point, outcome.calls[-1]))
    assert killed > 3


@pytest.mark.slow
def test_its_system_calls_may_fail(work: Digesting | Scrubbing) -> None:
    """Each single one: a clear error, or no difference at all."""
    failed = 0
    for point in points(work):
        reset(work)
        outcome = supervise(CHANGING, work.run, Cut(point, errno.ENOSPC))
        assert isinstance(outcome.result, str)
        code = outcome.result.partition(" ")[0]
        assert code in ("done", "11"), (point, outcome.calls[-1], outcome.result)
        failed += code != "done"
        work.prove((point, outcome.result))
    assert failed > 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_disk_that_has_no_room(work: Digesting | Scrubbing, disk: Path) -> None:
    """It ends with 11, and with room it is finished."""
    upstream = work.upstream
    shutil.copytree(upstream.root, disk / "state", symlinks=True)
    upstream.root = disk / "state"
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 10))
    assert work.run().startswith("11 ")
    filler.unlink()
    work.prove("with room")
