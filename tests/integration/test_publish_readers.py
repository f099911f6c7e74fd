"""Readers on a mirror that is synced again and again, throttled or not, never meet a hole."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from huai_client.plan.operations import Plan
from huai_client.publish.executor import execute
from huai_client.state import delayed_record
from huai_client.sync import apply
from huai_client.sync.result import SyncResult
from huai_schema.errors import ExitCode
from tests.support.background import background
from tests.support.readers import Archive, HoleError, Reader, apt, dnf
from tests.support.system_calls import Call, supervise
from tests.support.upstream import Downstream, Site, Upstream, assert_equal

ROUNDS = 6
NAMING = ("link", "mkdir", "rename", "symlink", "unlink")
"""The system calls that change a name."""


@pytest.fixture(name="archive")
def new_archive(place: Site) -> Archive:
    archive = Archive(place.upstream())
    archive.change()
    return archive


class Crowd:
    """Readers at every point of their reading; before each change by a sync they go one file on."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._readers: list[Reader] = []
        self.passes = self.again = 0

    def __call__(self, _: Call) -> None:
        """For `supervise`."""
        self._readers += [Reader(self._root, apt), Reader(self._root, dnf)]
        for reader in self._readers:
            reader.step()
        self._leave()

    def finish(self) -> None:
        """Let all read to their end, while nothing changes."""
        for reader in self._readers:
            reader.finish()
        self._leave()
        assert not self._readers

    def _leave(self) -> None:
        left = [reader for reader in self._readers if reader.done]
        self.passes += len(left)
        self.again += sum(reader.again for reader in left)
        self._readers = [reader for reader in self._readers if not reader.done]


def sync_under(down: Downstream, decide: Callable[[Call], None]) -> None:
    """Sync, and call `decide` before each change of a name."""
    outcome = supervise(NAMING, lambda: int(down.observed().exit_code), decide)
    assert outcome.result == ExitCode.OK


def synced_while_read(archive: Archive, down: Downstream) -> Crowd:
    """Several syncs with readers at work; those of one sync are still there in the next."""
    crowd = Crowd(down.dest)
    for _ in range(ROUNDS):
        archive.change()
        sync_under(down, crowd)
    crowd.finish()
    return crowd


def test_no_reader_ever_meets_a_hole(place: Site, archive: Archive) -> None:
    down = place.downstream(archive.up, delete_after="1h")
    down.synced()
    crowd = synced_while_read(archive, down)
    assert crowd.passes > 100
    # The package that is replaced under its name is seen as another one for a moment.
    assert 0 < crowd.again < crowd.passes
    assert delayed_record.head(down.state_file.with_name("delayed")).paths > 20
    down.configure(delete_after="0")
    down.synced()
    assert_equal(archive.up, down)


def test_the_readers_see_an_order_that_is_wrong(
    place: Site, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = place.downstream(archive.up, delete_after="1h")
    down.synced()

    def reversed_stages(plan: Plan, *rest: object) -> object:
        return execute(replace(plan, stages=plan.stages[::-1]), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(apply, "execute", reversed_stages)
    with pytest.raises(HoleError):
        synced_while_read(archive, down)


def test_the_readers_see_deletions_that_do_not_wait(place: Site, archive: Archive) -> None:
    down = place.downstream(archive.up)
    down.synced()
    with pytest.raises(HoleError):
        synced_while_read(archive, down)


def test_a_renamed_directory_is_found_under_both_names(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool/large", 200)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"pool/large").rename(up.at(b"renamed"))
    up.commit()

    looks = []

    def look(_: Call) -> None:
        looks.append((down.dest / "pool/large/7").exists())

    sync_under(down, look)
    assert len(looks) > 2
    assert all(looks)
    assert (down.dest / "pool/large").readlink() == Path("../renamed")
    assert (down.dest / "renamed/7").exists()
    assert down.verify().code == 0
    down.configure(delete_after="0")
    assert down.synced()["done"]["removed"] == 1
    assert_equal(up, down)


@contextmanager
def reading(root: Path) -> Iterator[list[Reader]]:
    """Both readers, one after the other, again and again in a thread."""
    finished: list[Reader] = []

    def work(stop: threading.Event) -> None:
        while not stop.is_set():
            for files in (apt, dnf):
                reader = Reader(root, files)
                while not reader.done:
                    reader.step()
                finished.append(reader)

    with background(work):
        yield finished


def test_readers_in_real_time(place: Site, archive: Archive) -> None:
    down = place.downstream(archive.up, delete_after="1h")
    down.synced()
    with reading(down.dest) as finished:
        for _ in range(ROUNDS):
            archive.change()
            ended = down.process("sync", down.name)
            assert ended.code == 0, ended
    assert len(finished) > ROUNDS


def test_the_plan_shows_repositories_and_a_sync_its_mixed_window(
    place: Site, archive: Archive
) -> None:
    down = place.downstream(archive.up)
    ended = down.run("plan", down.name, "--json")
    profiles = {event["path"]: event["profile"] for event in ended.events("repository")}
    assert profiles == {"debian": "apt", "rpm": "rpm"}
    assert "apt repository: debian (dists/*/InRelease)" in down.run("plan", down.name).err
    down.synced()
    archive.change()
    ended = down.sync("--json")
    result = ended.events("sync")[0]
    stages = result["published"]
    assert [stage["stage"] for stage in stages] == ["payload", "indices", "pointers"]
    assert all(stage["milliseconds"] > 0 and stage["changes"] for stage in stages)
    assert 0 < result["mixed_milliseconds"] < sum(stage["milliseconds"] for stage in stages)
    archive.change()
    assert " pointers in " in down.sync().err


def stage_of(result: SyncResult, path: bytes) -> str:
    assert result.prepared is not None
    stages = result.prepared.plan.stages
    return next(s.name for s in stages if any(file.path == path for file in s.fetches))


def test_rules_of_the_upstream_and_of_the_client(place: Site) -> None:
    up = place.upstream()
    up.change(publish=("pointers /serial", "profile rpm /os"))
    for name in (b"serial", b"os/repodata/primary.xml", b"data"):
        up.put(name, name)
    up.commit()
    result = place.downstream(up).observed()
    assert stage_of(result, b"serial") == "pointers"
    assert stage_of(result, b"os/repodata/primary.xml") == "indices"
    down = place.downstream(up, publish=("indices /data", "profile generic /"))
    result = down.observed()
    assert stage_of(result, b"data") == "indices"
    assert stage_of(result, b"serial") == "pointers"
    assert stage_of(result, b"os/repodata/primary.xml") == "payload"
    down.configure(publish=("profile deb /",))
    ended = down.sync("--adopt")
    assert ended.code == 40
    assert "the profile 'deb' does not exist" in ended.err


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
