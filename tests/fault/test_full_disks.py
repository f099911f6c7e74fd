"""A disk without room: the run says so and harms nothing, and the next one with room finishes."""

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from huai_client.transfer.errors import DiskFullError
from huai_schema.errors import HuaiError
from tests.fault.killing import Fault, Ground, Hit
from tests.fault.scenarios import commit, maintain
from tests.fault.soaking import killed
from tests.support.committing import Upstream as Committed
from tests.support.mounting import needs_mounts
from tests.support.nginx import nginx
from tests.support.processes import until
from tests.support.staged import bytes_in
from tests.support.system_calls import CHANGING, Call, process_of, supervise
from tests.support.transfers import Downstream as Destination
from tests.support.transfers import write_file
from tests.support.upstream import T0, Downstream, Pair, Site, Upstream, rsync_differences

MEGABYTE = 1 << 20
REFUSED = Hit(Fault(errno.ENOSPC), 0, 0, "write", "11")


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Take all that is left of a disk, for a while."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 10))
    yield
    filler.unlink()


@pytest.mark.parametrize("start", [commit.first, commit.second])
def test_a_commit_names_the_reason(
    ground: Ground, start: Callable[[Ground], commit.Committing]
) -> None:
    scene = start(ground)

    def full(call: Call) -> int | None:
        return errno.ENOSPC if call.name in ("write", "mkdir") else None

    message = str(supervise(CHANGING, lambda: commit.run(scene), full).result)
    assert message.startswith("11 ")
    assert "No space left on device" in message or "full" in message
    commit.is_old_or_new(scene, REFUSED)
    commit.is_finished(scene, REFUSED)


def test_a_record_of_hardlinks_that_ends_in_a_line(ground: Ground) -> None:
    """`RLIMIT_FSIZE` lets a write end in the middle, and fails the next, as a full disk does.

    What a later commit appended became part of that line: a name of its first pair was forgotten.
    """
    upstream, width = commit.linked_files(ground), 200

    def name(number: int) -> str:
        return f"d{number % 3}/{number:03}{'x' * width}"

    def add_pairs(numbers: range) -> None:
        for number in numbers:
            upstream.write(name(number))
            commit.link(upstream, name(number), name(number + 1))

    add_pairs(range(0, 300, 2))
    upstream.commit()
    record = upstream.places.hardlinks
    size = record.stat().st_size
    new = [name(number) for number in range(300, 600)]
    add_pairs(range(300, 600, 2))

    def commit_new() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + width, size + width))
        try:
            upstream.commit_listed(*new)
        except HuaiError as error:
            return error.message
        return ""

    assert "File too large" in str(supervise(("write",), commit_new, lambda _: None).result)
    assert not record.read_bytes().endswith(b"\n")
    commit.link(upstream, "d0/f6", "d0/first")
    for paths in (["d0/first", "d0/f6"], new):
        assert upstream.commit_listed(*paths).changed
    upstream.write("d0/f6", "the leader changes, and what follows it")
    assert commit.list_is_enough(upstream, "d0/f6") == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("start", [maintain.to_merge, maintain.to_drop])
def test_git_may_be_refused_what_it_writes(
    ground: Ground, start: Callable[[Ground], maintain.Maintaining]
) -> None:
    """Its messages are all that tells what happened to it."""
    scene, own = start(ground), set[int]()

    def full(call: Call) -> int | None:
        process = process_of(call.thread)
        own.update([] if own else [process])
        to_file = call.name == "write" and call.arguments[0] > 2
        return errno.ENOSPC if to_file and process not in own else None

    message = str(supervise(CHANGING, lambda: maintain.run(scene), full).result)
    assert message.startswith("11 "), message
    maintain.no_commit_is_lost(scene, REFUSED)
    maintain.is_maintained(scene)


@needs_mounts
@pytest.mark.parametrize("settings", [{}, {"keep": "0", "keep_commits": 2}])
def test_maintain_ends_with_11(ground: Ground, disk: Path, settings: dict[str, object]) -> None:
    upstream = maintain.committed(ground, **settings)
    full = Committed(disk, upstream.tree)
    full.module, full.root = upstream.module, disk / "state"
    shutil.copytree(upstream.root, full.root)
    scene = maintain.Maintaining(full)
    with filled(disk):
        assert maintain.run(scene, maintain.NOW).startswith("11 ")
        assert full.check().faults == ()
        assert full.check().commits == upstream.check().commits
    assert maintain.run(scene) == "done"
    maintain.no_commit_is_lost(scene, REFUSED)
    maintain.is_maintained(scene)


@needs_mounts
def test_content_of_a_web_server_goes_on(upstream: Path, disk: Path) -> None:
    """The server is not at fault."""
    file = write_file(upstream, b"large", os.urandom(8 * MEGABYTE))
    with nginx(upstream) as server:
        (disk / "ballast").write_bytes(bytes(4 * MEGABYTE))
        down = Destination(disk / "dest")
        with pytest.raises(DiskFullError):
            down.fetch([file], server.url)
        (disk / "ballast").unlink()
        assert down.fetch([file], server.url).complete
        assert server.requests[-1].split()[1] == "206"


def staged(down: Downstream) -> int:
    return bytes_in(down.dest.glob(".~tmp~/huai/*/**/*"))


@pytest.fixture(name="cut")
def cut_transfer(place: Site, disk: Path) -> Pair:
    """More than half of the only file is staged: the whole file has no room next to that."""
    size, half = 7 * MEGABYTE, 4 * MEGABYTE
    up = place.upstream()
    up.put(b"day1.iso", os.urandom(size))
    up.commit()
    down = place.downstream(up, dest=disk)
    process = down.spawn("sync", "--bwlimit", "3000", down.name)
    until(lambda: staged(down) > half)
    killed(process.pid, children=True)
    process.communicate()
    assert half < staged(down) < size
    return up, down


@needs_mounts
@pytest.mark.parametrize("changed", [False, True])
def test_a_cut_transfer_is_not_in_its_own_way(cut: Pair, *, changed: bool) -> None:
    """It goes on, or what no longer is wanted makes room."""
    up, down = cut
    if changed:
        up.at(b"day1.iso").unlink()
        up.put(b"day2.iso", os.urandom(7 * MEGABYTE))
        up.commit()
    ended = down.sync()
    assert ended.code == 0, ended
    assert rsync_differences(up, down) == ""


def renew(up: Upstream, number: int, megabytes: int = 3) -> None:
    up.put(b"large", os.urandom(megabytes * MEGABYTE), mtime=T0 + number)
    up.commit()


def serials(down: Downstream) -> list[int]:
    return sorted(int(path.name.split("-")[0]) for path in down.dest.glob(".~tmp~/huai-trash/*"))


@needs_mounts
def test_the_oldest_trash_makes_room_if_that_is_enough(place: Site, disk: Path) -> None:
    up = place.upstream()
    renew(up, 1)
    down = place.downstream(up, dest=disk, trash="7d")
    down.synced()
    for number in (2, 3):
        renew(up, number)
        assert "is deleted early" not in down.sync().err
    assert serials(down) == [1, 2]
    renew(up, 4, megabytes=2)
    ended = down.sync()
    assert ended.code == 0, ended
    assert ended.err.count("is deleted early") == 1
    assert serials(down) == [2, 3]
    assert rsync_differences(up, down) == ""
    assert down.run("undo", down.name).code == 0
    renew(up, 5, megabytes=20)
    assert down.sync("--unhold").code == 49
    assert 2 in serials(down), "thrown away for nothing"


@needs_mounts
@pytest.mark.parametrize("trash", ["0", "7d"])
def test_a_sync_that_only_deletes_needs_no_room(place: Site, disk: Path, trash: str) -> None:
    up = place.upstream()
    renew(up, 1)
    up.put(b"e/goes", os.urandom(MEGABYTE))
    down = place.downstream(up, dest=disk, trash=trash)
    down.synced()
    renew(up, 2)
    down.synced()
    up.at(b"e/goes").unlink()
    up.commit()
    with filled(disk):
        ended = down.sync()
    assert ended.code == 0, ended
    assert not (disk / "e/goes").exists()
