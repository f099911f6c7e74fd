"""Work on what was committed: `maintain`, `digest`, `scrub`."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from huai_schema.errors import HuaiError
from huai_server.commit import later, scrub
from huai_server.commit.later import digest_tree
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.scrub import scrub_tree
from huai_server.store.maintain import foresee, maintain
from huai_server.store.scrub_record import Damage, Round, ScrubRecord, read_record, write_record
from tests.fault.killing import Ground, Hit, undone
from tests.support.committing import NAME, Upstream, fsck

COMMITS = 6
NOW = 1_900_000_000
LATER = NOW + 7200
"""Files that were replaced at NOW may go."""
FILES = 12
ALL = ReadLimits()
ROTTEN = ("d0/f3", "d1/f7")
BEGUN = 1_000_000_000


def ended(work: Callable[[], object]) -> str:
    """The result in a word."""
    try:
        work()
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    return "done"


@dataclass
class Maintaining:
    """Some commits that wait for `maintain`, next to packs that it has replaced before."""

    upstream: Upstream

    def __post_init__(self) -> None:
        upstream = self.upstream
        self.folders = [upstream.root]
        self.commit = upstream.head.commit
        self.before = upstream.check().commits
        dropped = foresee(upstream.places, upstream.module.retention, now=LATER)[0].dropped
        self.after = self.before - dropped


def to_merge(ground: Ground) -> Maintaining:
    return Maintaining(committed(ground))


def to_drop(ground: Ground) -> Maintaining:
    return Maintaining(committed(ground, keep="0", keep_commits=2))


def committed(ground: Ground, **settings: object) -> Upstream:
    upstream = Upstream(ground.folder)
    upstream.configure(**settings)
    for number in range(60):
        upstream.write(f"d{number % 3}/f{number}", "x" * number)
    upstream.commit()
    for number in range(COMMITS):
        upstream.write(f"d1/new{number}", "new")
        upstream.commit()
        if number == COMMITS // 2:
            maintain(upstream.places, lambda: upstream.module.retention, now=NOW)
    return upstream


def run(scene: Maintaining, now: float = LATER) -> str:
    upstream = scene.upstream
    return ended(lambda: maintain(upstream.places, lambda: upstream.module.retention, now=now))


def no_commit_is_lost(scene: Maintaining, hit: Hit) -> None:
    assert hit.killed or hit.word in ("done", "11", "50")
    upstream = scene.upstream
    assert upstream.head.commit == scene.commit
    fsck(upstream.places.repository)
    assert upstream.check().commits in (scene.before, scene.after)
    assert upstream.check().faults == ()


def is_maintained(scene: Maintaining, _: Hit | None = None) -> None:
    """The next run leaves nothing to do and no temporary file."""
    upstream = scene.upstream
    done = maintain(upstream.places, lambda: upstream.module.retention, now=LATER + 3600)
    assert done.after.unfinished == (0, 0)
    # All but the one that is just what is made of them.
    assert done.plan.merged - done.after.replaced.files in (0, 1)
    plan = foresee(upstream.places, upstream.module.retention, now=LATER)[0]
    assert plan == (0, 0, 0)
    fsck(upstream.places.repository)
    assert upstream.check().commits == scene.after


def in_batches(ground: Ground) -> Upstream:
    """Files that take several batches."""
    ground.patch.setattr(later, "_BATCH", 5)
    ground.patch.setattr(scrub, "_FILES", 5)
    upstream = Upstream(ground.folder)
    for number in range(FILES):
        upstream.write(f"d{number % 3}/f{number}", f"content {number}", mtime=1_000 + number)
    return upstream


class Digesting:
    """Adds the digests that a commit left out."""

    def __init__(self, ground: Ground) -> None:
        self.upstream = upstream = in_batches(ground)
        self.folders = [upstream.root]
        with undone(upstream.root):
            upstream.commit()
            self.tree = upstream.entries_id
        upstream.configure(digest="later")
        upstream.commit()
        self.before = upstream.entries_id

    def run(self) -> str:
        return ended(lambda: digest_tree(NAME, self.upstream.module, self.upstream.places, ALL))

    def right_after(self, hit: Hit) -> str:
        """The last commit or the next one, which is sound."""
        assert hit.killed or hit.word in ("done", "11")
        upstream = self.upstream
        assert upstream.entries_id in (self.before, self.tree)
        assert upstream.check().faults == ()
        fsck(upstream.places.repository)
        return "old" if upstream.entries_id == self.before else "new"

    def is_finished(self, _: Hit) -> None:
        upstream = self.upstream
        assert self.run() == "done"
        assert upstream.entries_id == self.tree
        assert digest_tree(NAME, upstream.module, upstream.places, ALL).changed is False


class Scrubbing:
    """Finds two damaged files, and that a third one is not damaged any more."""

    def __init__(self, ground: Ground) -> None:
        self.upstream = upstream = in_batches(ground)
        self.folders = [upstream.root]
        upstream.commit()
        self._rot(*ROTTEN)
        former = self._rot("d2/f5")[0]
        upstream.write("d2/f5", "content 5", mtime=1_005)
        write_record(upstream.places.scrub, ScrubRecord(Round(BEGUN), None, (former,)))
        self.head = upstream.head.commit

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

    def right_after(self, hit: Hit) -> None:
        """The record is one that a run wrote, and no commit was touched."""
        assert hit.killed or hit.word in ("done", "11")
        record = read_record(self.upstream.places.scrub)
        assert record.current
        assert {each.path for each in record.damage} <= {*self.damaged_paths, b"d2/f5"}
        assert self.upstream.head.commit == self.head

    @property
    def damaged_paths(self) -> set[bytes]:
        """The files that are damaged."""
        return {os.fsencode(path) for path in ROTTEN}

    def is_finished(self, _: Hit) -> None:
        """Check that at most one batch was read twice, unless the round had ended."""
        upstream = self.upstream
        record = read_record(upstream.places.scrub)
        assert record.current
        result = scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True)
        assert {each.path for each in result.record.damage} == self.damaged_paths
        assert result.files == FILES - (0 if record.finished else record.current.files)
        assert upstream.head.commit == self.head
