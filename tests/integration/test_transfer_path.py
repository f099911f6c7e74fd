"""Content from a path of this machine, which the engine copies: no rsync is there."""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.config.modes import DefaultMode
from huai_client.run.options import Deadline
from huai_client.transfer.errors import RsyncRequirementError, UpstreamRefusedError
from huai_client.transfer.options import TransferOptions
from huai_schema.paths import rel_path
from tests.support.old_kernels import OPENAT2, without_call
from tests.support.reflinks import is_shared, shares_blocks
from tests.support.transfers import Downstream, Recorder, described, put_many, write_file
from tests.support.unprivileged import run_unprivileged

T0 = 1_600_000_000_123_456_789
NONE = TransferOptions(program="rsync-that-is-not-installed", retries=0)
ODD_NAMES = [
    b"plain",
    b"-rf",
    b"new\nline",
    b"not utf-8 \xff\xfe",
    b"*",
    b"n" * 255,
    b"deep/" * 50 + b"file",
    b"deep/" * 49 + b"other",
    b"deep/file",
    b".hidden.ABCDEF",
]


def test_every_name_and_time_arrives(upstream: Path, down: Downstream) -> None:
    times = [T0, 0, -1_500_000_000, 5_000_000_000 * 10**9 + 1]
    files = [
        write_file(upstream, name, name, mtime=times[i % 4]) for i, name in enumerate(ODD_NAMES)
    ]
    files.append(write_file(upstream, b"empty", b"", mtime=T0))
    outcome = down.fetch(files, str(upstream), NONE)
    assert outcome.complete
    assert outcome.arrived == files
    assert outcome.bytes_received == sum(file.size for file in files)
    assert sorted(down.listener.arrived) == sorted(file.path for file in files)
    assert down.listener.sizes[-1] == sum(file.size for file in files)
    again = down.fetch(files, str(upstream / "gone"), NONE)
    assert (again.arrived, again.bytes_received) == (files, 0)


def test_copies_get_owner_and_mode_with_their_content(upstream: Path, down: Downstream) -> None:
    uid, group = os.geteuid(), 65534 if os.geteuid() == 0 else os.getegid()
    down.finish = (lambda _: uid, lambda _: group)
    modes = [0o644, 0o777, 0o400, 0o4755, 0o200, DefaultMode(0o644)]
    files = [
        write_file(upstream, b"%d-%d" % (number, len(content)), content, mtime=T0)._replace(
            mode=mode
        )
        for number, mode in enumerate(modes)
        for content in (b"", b"content")
    ]
    assert down.fetch(files, str(upstream), NONE).arrived == files
    finished = [
        file for file in files if not isinstance(file.mode, DefaultMode) and file.mode != 0o200
    ]
    assert down.finished == {*finished}
    for file in finished:
        status = (down.root / "incoming" / "1" / os.fsdecode(file.path)).stat()
        assert (status.st_uid, status.st_gid) == (uid, group)
        assert stat.S_IMODE(status.st_mode) == file.mode
        assert status.st_mtime_ns == T0


def test_without_owners_and_modes_to_set_nothing_is_finished(
    upstream: Path, down: Downstream
) -> None:
    assert down.fetch(put_many(upstream, 3, 10), str(upstream), NONE).complete
    assert down.finished == set()


def test_many_files_by_several_streams(upstream: Path, down: Downstream) -> None:
    files = [write_file(upstream, b"%d/%d" % (i % 7, i), os.urandom(i)) for i in range(300)]
    options = replace(NONE, streams=3, batch_files=9)
    assert down.fetch(files, str(upstream), options).arrived == files


def test_a_path_that_is_not_there(upstream: Path, down: Downstream) -> None:
    file = write_file(upstream, b"a", b"1")
    for path in (upstream / "absent", upstream / "a"):
        with pytest.raises(UpstreamRefusedError) as caught:
            down.fetch([file], str(path), NONE)
        assert str(path) in caught.value.message


def test_the_path_itself_may_be_a_symlink(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    file = write_file(upstream, b"a", b"1")
    (tmp_path / "link").symlink_to(upstream)
    assert down.fetch([file], str(tmp_path / "link"), NONE).arrived == [file]


def test_holes_stay_holes(upstream: Path, down: Downstream) -> None:
    with (upstream / "sparse").open("wb") as sparse:
        sparse.seek(5_000_000)
        sparse.write(b"data")
        sparse.truncate(10_000_000)
    for digest in (True, False):
        file = described(upstream, b"sparse", digest=digest)
        arrived = Downstream(down.dest / str(digest))
        assert arrived.fetch([file], str(upstream), NONE).arrived == [file]
        [copy] = arrived.root.rglob("incoming/*/sparse")
        assert copy.read_bytes() == (upstream / "sparse").read_bytes()
        assert copy.stat().st_blocks * 512 < 1_000_000


def test_a_volatile_file_may_be_newer(upstream: Path, down: Downstream) -> None:
    names = (b"newer", b"older", b"larger", b"as-it-was", b"other-content")
    files = {name: write_file(upstream, name, b"content", mtime=T0) for name in names}
    newer = write_file(upstream, b"newer", b"other", mtime=T0 + 10**10)
    write_file(upstream, b"older", b"other", mtime=T0 - 10**10)
    write_file(upstream, b"larger", bytes(2_000_000), mtime=T0 + 10**10)
    write_file(upstream, b"other-content", b"CONTENT", mtime=T0)
    options = replace(NONE, volatile={file.path for file in files.values()})
    outcome = down.fetch([*files.values()], str(upstream), options)
    arrived = {b"newer", b"as-it-was", b"other-content"}
    assert outcome.arrived == [files[name] for name in names if name in arrived]
    assert outcome.unchanged == [files[b"older"], files[b"larger"]]
    assert outcome.newer[newer.path] == newer._replace(digest=None)
    assert {*outcome.newer} == {b"newer", b"other-content"}


def test_blocks_are_shared_where_the_file_system_can_do_it(
    upstream: Path, down: Downstream
) -> None:
    files = put_many(upstream, 2, 1 << 20)
    files.append(files[0]._replace(path=rel_path(b"other"), digest=bytes(32)))
    write_file(upstream, b"other", os.urandom(1 << 20), mtime=files[-1].mtime)
    outcome = down.fetch(files, str(upstream), NONE)
    assert (outcome.arrived, outcome.mismatched) == (files[:2], files[2:])
    staged = [down.root / "incoming/1" / os.fsdecode(file.path) for file in files]
    assert [is_shared(path) for path in staged[:2]] == [shares_blocks(upstream)] * 2
    assert not staged[2].exists()


def test_time_is_up_in_the_middle_of_a_file(upstream: Path, down: Downstream) -> None:
    small, large = write_file(upstream, b"a", b"1"), write_file(upstream, b"b", bytes(1 << 20))
    options = replace(NONE, bwlimit=1, streams=1, deadline=Deadline.after(1))
    outcome = down.fetch([small, large], str(upstream), options)
    late = [] if shares_blocks(upstream) else [large]  # nothing is limited where nothing is copied
    assert outcome.late == late
    assert outcome.arrived == [each for each in (small, large) if each not in late]
    assert not late or not [path for path in down.root.rglob("b") if path.is_file()]
    assert down.fetch([small, large], str(upstream), NONE).arrived == [small, large]


def forbidden(folder: Path) -> None:
    """Runs as an ordinary user."""
    upstream = folder / "upstream"
    names = (b"a", b"closed/b", b"closed/c", b"readable")
    files = [write_file(upstream, name, b"content") for name in names]
    (upstream / "a").chmod(0)
    (upstream / "closed").chmod(0)
    outcome = Downstream(folder / "dest").fetch(files, str(upstream), NONE)
    (upstream / "closed").chmod(0o700)
    assert outcome.arrived == files[3:]
    assert [each.file for each in outcome.refused] == files[:3]
    assert {each.reason for each in outcome.refused} == {"permission denied at the upstream"}


def test_what_may_not_be_read_is_refused(short_path: Path) -> None:
    run_unprivileged(forbidden, short_path)


def test_a_kernel_without_openat2(upstream: Path, down: Downstream) -> None:
    files = [write_file(upstream, name, name) for name in ODD_NAMES]
    write_file(upstream, b"below/file", b"content")
    (upstream / "link").symlink_to("below")
    linked = described(upstream, b"link/file")

    def fetch() -> bool:
        outcome = down.fetch([*files, linked], str(upstream), NONE)
        return (outcome.arrived, outcome.missing) == (files, [linked])

    assert without_call(OPENAT2, fetch)


class Interrupted(Recorder):
    """Stands for a person who has seen enough."""

    def progressed(self, size: int, files: int) -> None:
        super().progressed(size, files)
        raise KeyboardInterrupt


def test_an_interruption_ends_it(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 3, 1 << 20)
    down.listener = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        down.fetch(files, str(upstream), replace(NONE, bwlimit=200, streams=3))
    down.listener = Recorder()
    assert down.fetch(files, str(upstream), NONE).arrived == files


@pytest.mark.parametrize(
    ("extra", "copied"),
    [
        (("-4", "--password-file", "/secret", "-e", "ssh -i KEY", "--rsh=ssh", "-z"), True),
        (("-essh", "--compress-level=3", "-46z", "--contimeout=7"), True),
        (("--bwlimit=5",), False),
        (("--fuzzy",), False),
        (("-zH",), False),
        (("--password-file=/secret", "--fake-super"), False),
    ],
)
def test_options_that_only_rsync_knows_need_it(
    upstream: Path, down: Downstream, extra: tuple[str, ...], *, copied: bool
) -> None:
    file = write_file(upstream, b"a", b"1")
    options = replace(NONE, extra=extra)
    if copied:
        assert down.fetch([file], str(upstream), options).arrived == [file]
        return
    with pytest.raises(RsyncRequirementError):
        down.fetch([file], str(upstream), options)


@pytest.fixture
def swapping() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Repeats something on a thread until the test ends."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def start(action: Callable[[], None]) -> None:
        def repeat() -> None:
            while not over.is_set():
                action()

        threads.append(threading.Thread(target=repeat))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join(60)


def test_a_directory_that_becomes_a_symlink_leads_nowhere(
    upstream: Path, down: Downstream, tmp_path: Path, swapping: Callable[[Callable[[], None]], None]
) -> None:
    """Size and time outside are the same, and no digest would tell."""
    secret = write_file(tmp_path / "outside", b"file", b"secret!", mtime=T0)
    write_file(upstream, b"a/real/file", b"content", mtime=T0)
    file = described(upstream, b"a/real/file", digest=False)._replace(path=rel_path(b"a/b/file"))
    assert (file.size, file.mtime) == (secret.size, secret.mtime)
    above = upstream / "a"
    (above / "link").symlink_to(tmp_path / "outside")

    def swap() -> None:
        for name in ("real", "link"):
            (above / name).rename(above / "b")
            (above / "b").rename(above / name)

    swapping(swap)
    arrivals = 0
    for number in range(150):
        fresh = Downstream(down.dest / str(number))
        outcome = fresh.fetch([file], str(upstream), NONE)
        assert outcome.arrived in ([], [file])
        arrivals += len(outcome.arrived)
        for path in fresh.root.rglob("file"):
            assert path.read_bytes() == b"content"
    assert arrivals < 150


def test_a_file_that_changes_while_it_is_read(
    upstream: Path, down: Downstream, swapping: Callable[[Callable[[], None]], None]
) -> None:
    """Whatever arrives is whole: of one version, or not at all."""
    size = 1 << 19
    place = upstream / "file"
    write_file(upstream, b"file", b"a" * size, mtime=T0)
    file = described(upstream, b"file", digest=False)
    proved = described(upstream, b"file")

    def change() -> None:
        for letter in (b"b", b"a"):
            with place.open("r+b") as target:
                for begin in range(0, size, 1 << 16):
                    target.seek(begin)
                    target.write(letter * (1 << 16))
            os.utime(place, ns=(T0, T0))

    swapping(change)
    for number in range(60):
        fresh = Downstream(down.dest / str(number))
        outcome = fresh.fetch([proved], str(upstream), NONE)
        assert outcome.arrived in ([], [proved])  # and `fetch` has compared the digest
        fresh = Downstream(down.dest / f"without-{number}")
        assert fresh.fetch([file], str(upstream), NONE).arrived in ([], [file])


def test_a_copy_has_its_final_mode_and_stays_ours(upstream: Path, down: Downstream) -> None:
    modes = {b"a": 0o755, b"b": 0o644, b"c": 0o4755, b"d": 0o444}
    files = [write_file(upstream, name, name)._replace(mode=mode) for name, mode in modes.items()]
    before = os.umask(0o022)
    try:
        assert down.fetch(files, str(upstream), NONE).arrived == files
    finally:
        os.umask(before)
    staged = {path.name: path.stat().st_mode & 0o7777 for path in down.root.rglob("incoming/*/*")}
    assert staged == {"a": 0o755, "b": 0o644, "c": 0o755, "d": 0o644}
    assert down.root.stat().st_mode & 0o777 == 0o700
