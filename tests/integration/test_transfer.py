"""Transfers from a real rsync daemon, all going well or as well as they can."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.staging import Arrival, Staging
from huai_client.transfer.fetch import RefusedFile
from huai_client.transfer.options import TransferOptions
from huai_schema.entries import File
from huai_schema.paths import rel_path
from tests.support.rsyncd import CHROOTS, IS_ROOT, rsync_daemon
from tests.support.staged import ready
from tests.support.transfers import BY_RSYNC, Downstream, described, write_file

T0 = 1_600_000_000_123_456_789
ODD_NAMES = [
    b"plain",
    b"-rf",
    b"--delete",
    b"#comment",
    b";semicolon",
    b" leading and trailing ",
    b"new\nline",
    b"tab\tand\\backslash",
    b"carriage\rreturn",
    b"not utf-8 \xff\xfe",
    "Größe 大".encode(),
    b"*",
    b"[a]?",
    b"a:b",
    b"user@host::m",
    b"n" * 255,
    b"deep/" * 50 + b"file",
    b".hidden.ABCDEF",
]


@pytest.mark.parametrize("chroot", CHROOTS)
def test_every_name_and_time_arrives(upstream: Path, down: Downstream, chroot: str) -> None:
    times = [T0, 0, -1_500_000_000, 5_000_000_000 * 10**9 + 1]
    files = [
        write_file(upstream, name, name, mtime=times[i % 4]) for i, name in enumerate(ODD_NAMES)
    ]
    with rsync_daemon({"m": upstream}, use_chroot=chroot) as url:
        outcome = down.fetch(files, f"{url}/m")
    assert outcome.arrived == files
    assert outcome.complete
    assert outcome.bytes_received > sum(file.size for file in files)
    assert sorted(down.listener.arrived) == sorted(file.path for file in files)
    assert down.listener.totals == [(len(files), sum(file.size for file in files))]
    assert down.listener.ends == 1


def test_what_came_is_written_to_disk_while_more_comes(
    upstream: Path, down: Downstream, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    begun: list[tuple[int, int]] = []

    def begin(_: Staging, files: int, size: int) -> None:
        begun.append((files, size))

    monkeypatch.setattr(Staging, "begin_to_write", begin)
    files = [write_file(upstream, b"%d" % number, b"four") for number in range(5)]
    outcome = down.fetch(files, url, TransferOptions(streams=1, batch_files=1))
    assert outcome.complete
    assert set(begun) == {(1, 4)}
    assert len(begun) < 5  # not for what comes last


@pytest.mark.parametrize("chroot", CHROOTS)
def test_a_tree_may_lie_below_the_module(upstream: Path, down: Downstream, chroot: str) -> None:
    files = [write_file(upstream, b"pub/linux/" + name, name) for name in (b"a", b"d/b", b"-c")]
    asked_files = [file._replace(path=rel_path(file.path[10:])) for file in files]
    with rsync_daemon({"m": upstream}, use_chroot=chroot) as url:
        outcome = down.fetch(asked_files, f"{url}/m/pub/linux")
    assert outcome.complete
    assert outcome.arrived == asked_files


def test_what_is_ready_is_not_asked_for_again(upstream: Path, down: Downstream, url: str) -> None:
    first, second = write_file(upstream, b"a", b"1"), write_file(upstream, b"b", b"2")
    down.fetch([first], url)
    down.fetch([first, second], url)
    assert down.listener.totals == [(1, 1), (1, 1)]
    again = down.fetch([first, second], "rsync://127.0.0.1:1/no/daemon")
    assert again.arrived == [first, second]
    assert again.bytes_received == 0


def test_many_batches_over_several_streams(upstream: Path, down: Downstream, url: str) -> None:
    files = [write_file(upstream, b"%d/%d" % (i % 7, i), b"x" * i) for i in range(200)]
    options = TransferOptions(streams=3, batch_files=9, retries=0)
    outcome = down.fetch(files, url, options)
    assert outcome.arrived == files
    assert down.listener.sizes == sorted(down.listener.sizes)
    assert down.listener.sizes[-1] == sum(file.size for file in files)
    assert down.listener.files == sorted(down.listener.files)
    assert down.listener.files[-1] == len(files)
    left = [path for path in down.root.glob("incoming/**/*") if not path.is_dir()]
    names = [os.fsencode(path.relative_to(down.root)).split(b"/", 2)[2] for path in left]
    assert sorted(names) == sorted(file.path for file in files)


@pytest.mark.parametrize("levels", [1023, 1024])
def test_a_path_that_is_too_long_for_rsync_is_named(
    upstream: Path, down: Downstream, levels: int, url: str
) -> None:
    deep = File(rel_path(b"d/" * levels + b"file"), 1, T0)
    good = write_file(upstream, b"good", b"1")
    outcome = down.fetch([good, deep], url)
    assert outcome.arrived == [good]
    refused = [RefusedFile(deep, "too long: rsync transfers no path of 1,024 directories")]
    assert outcome.refused == (refused if levels == 1024 else [])
    assert outcome.missing == ([] if levels == 1024 else [deep])


def test_a_small_change_in_a_big_file_costs_little(
    upstream: Path, down: Downstream, url: str
) -> None:
    content = bytearray(os.urandom(20_000_000))
    write_file(down.dest, b"sub/big", bytes(content))
    content[7_000_000:7_000_010] = b"0123456789"
    file = write_file(upstream, b"sub/big", bytes(content), mtime=T0)
    outcome = down.fetch([file], url)
    assert outcome.arrived == [file]
    assert outcome.bytes_received < 200_000


def test_many_small_files_are_transferred_whole_and_large_ones_by_deltas(
    upstream: Path, down: Downstream, url: str
) -> None:
    sizes = {b"d/%d" % number: 10_000 for number in range(120)} | {b"d/big": 3_000_000}
    files = []
    for path, size in sizes.items():
        content = os.urandom(size)
        write_file(down.dest, path, content)
        files.append(write_file(upstream, path, content[:-4] + b"tail", mtime=T0))
    outcome = down.fetch(files, url)
    assert outcome.arrived == files
    assert 1_200_000 < outcome.bytes_received < 1_400_000


def test_the_present_file_may_lie_behind_a_symlink_above_dest(
    upstream: Path, tmp_path: Path, url: str
) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    down = Downstream(tmp_path / "link" / "dest")
    write_file(down.dest, b"big", content)
    file = write_file(upstream, b"big", content + b"more", mtime=T0)
    outcome = down.fetch([file], url)
    assert outcome.bytes_received < 100_000


def test_a_change_within_the_same_second_and_size_is_seen(
    upstream: Path, down: Downstream, url: str
) -> None:
    write_file(down.dest, b"a", b"old", mtime=T0)
    file = write_file(upstream, b"a", b"new", mtime=T0 + 1)
    assert down.fetch([file], url).arrived == [file]
    write_file(upstream, b"a", b"content")
    file = described(upstream, b"a", digest=False)
    assert down.fetch([file], url).arrived == [file]


def test_holes_stay_holes(upstream: Path, down: Downstream, url: str) -> None:
    place = upstream / "sparse"
    with place.open("wb") as target:
        target.truncate(50_000_000)
        target.seek(20_000_000)
        target.write(b"x" * 4096)
    file = described(upstream, b"sparse")
    outcome = down.fetch([file], url)
    assert outcome.arrived == [file]
    with Staging(down.root) as staging:
        staging.incoming.recover([file])
        assert ready(staging, file).stat().st_blocks * 512 < 2_000_000


def test_staged_files_are_ours_alone_whatever_their_mode(
    upstream: Path, down: Downstream, url: str
) -> None:
    write_file(upstream, b"setuid", b"1")
    (upstream / "setuid").chmod(0o6777)
    write_file(upstream, b"shut/none", b"2")
    # The daemon of an ordinary user has to read it.
    (upstream / "shut/none").chmod(0 if IS_ROOT else 0o400)
    (upstream / "shut").chmod(0o500)
    write_file(down.dest, b"setuid", b"0")
    (down.dest / "setuid").chmod(0o4755)
    files = [described(upstream, b"setuid"), described(upstream, b"shut/none")]
    assert down.fetch(files, url).complete
    with Staging(down.root) as staging:
        staging.incoming.recover(files)
        assert [ready(staging, file).stat().st_mode & 0o7777 for file in files] == [0o600, 0o600]
        assert down.root.stat().st_mode & 0o777 == 0o700


# ---------------------------------------------------------------- the upstream moved on


def test_vanished_and_changed_files_are_told_apart(
    upstream: Path, down: Downstream, url: str
) -> None:
    names = b"stays vanishes grows touched rewritten d/link d/dir gone/x".split()
    files = {name: write_file(upstream, name, name, mtime=T0) for name in names}
    (upstream / "vanishes").unlink()
    write_file(upstream, b"grows", b"more than before", mtime=T0)
    os.utime(upstream / "touched", ns=(T0, T0 + 1))
    write_file(upstream, b"rewritten", b"REWRITTEN", mtime=T0)
    (upstream / "d/link").unlink()
    (upstream / "d/link").symlink_to("../stays")
    (upstream / "d/dir").unlink()
    (upstream / "d/dir").mkdir()
    (upstream / "gone/x").unlink()
    (upstream / "gone").rmdir()
    (upstream / "gone").symlink_to("/etc")
    outcome = down.fetch([*files.values()], url)
    assert outcome.arrived == [files[b"stays"]]
    missing = {file.path for file in outcome.missing}
    mismatched = {file.path for file in outcome.mismatched}
    assert missing == {b"vanishes", b"d/link", b"gone/x"}
    assert mismatched == {b"grows", b"touched", b"rewritten", b"d/dir"}
    assert down.listener.retries == []
    assert (b"grows", Arrival.MISMATCH) in down.listener.not_arrived
    assert (b"vanishes", Arrival.MISSING) in down.listener.not_arrived


@pytest.mark.parametrize("chroot", CHROOTS)
def test_a_symlink_in_a_directorys_place_leads_nowhere(
    upstream: Path, down: Downstream, tmp_path: Path, chroot: str
) -> None:
    outside = tmp_path / "outside"
    files = [write_file(outside, b"target", b"theirs"), write_file(outside, b"unasked", b"theirs")]
    (upstream / "sub").symlink_to(outside)
    target = File(rel_path(b"sub/target"), 4, T0, digest=bytes(32))
    with rsync_daemon({"m": upstream}, use_chroot=chroot) as url:
        outcome = down.fetch([target], f"{url}/m")
    assert outcome.arrived == []
    assert [path.name for path in down.root.rglob("sub*")] == []
    assert [described(outside, file.path) for file in files] == files


def test_a_wrong_digest_is_never_accepted_and_a_right_one_is_next_time(
    upstream: Path, down: Downstream, url: str
) -> None:
    file = write_file(upstream, b"big", os.urandom(2_000_000))
    wrong = file._replace(digest=bytes(32))
    assert down.fetch([wrong], url).mismatched == [wrong]
    assert down.fetch([wrong], url).mismatched == [wrong]
    outcome = down.fetch([file], url)
    assert outcome.arrived == [file]
    assert outcome.bytes_received < 100_000  # what came before was the basis


# ---------------------------------------------------------------- other ways to get there


def test_a_path_and_a_remote_shell_are_upstreams(upstream: Path, tmp_path: Path) -> None:
    """By rsync: what only rsync can do was asked for."""
    shell = tmp_path / "ssh"
    shell.write_text('#!/bin/sh\n[ "$1" = mirror.example ] || exit 255\nshift\nexec "$@"\n')
    shell.chmod(0o755)
    files = [write_file(upstream, name, name) for name in ODD_NAMES]
    absent = File(rel_path(b"absent"), 1, T0)
    for name, url, extra in (
        ("path", str(upstream), BY_RSYNC),
        ("shell", f"mirror.example:{upstream}", ("-e", str(shell))),
    ):
        options = TransferOptions(extra=extra, retries=0)
        outcome = Downstream(tmp_path / name).fetch([*files, absent], url, options)
        assert outcome.arrived == files
        assert outcome.missing == [absent]


def test_the_next_url_is_tried_for_what_the_first_has_not(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    first, second = write_file(upstream, b"first", b"1"), write_file(other, b"second", b"2")
    stale = write_file(other, b"stale", b"new", mtime=T0)
    write_file(upstream, b"stale", b"old", mtime=T0)
    neither = File(rel_path(b"neither"), 1, T0)
    with rsync_daemon({"m": upstream, "other": other}) as url:
        urls = ["rsync://127.0.0.1:1/m", f"{url}/unknown", f"{url}/m", f"{url}/other"]
        outcome = down.fetch([first, second, stale, neither], urls)
    assert outcome.arrived == [first, second, stale]
    assert outcome.missing == [neither]


def recording_rsync(folder: Path, first: str = "") -> str:
    """Make a program that runs `first`, writes its arguments to `calls`, and is rsync."""
    wrapper = folder / "rsync"
    wrapper.write_text(f'#!/bin/sh\n{first}\necho "$@" >> {folder}/calls\nexec rsync "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


@pytest.mark.parametrize(("version", "runs"), [("3.2.4", 3), ("3.2.5", 1)])
def test_only_an_rsync_that_trusts_its_sender_gets_many_names(
    upstream: Path, down: Downstream, tmp_path: Path, version: str, runs: int
) -> None:
    wrapper = recording_rsync(
        tmp_path, f'[ "$1" != --version ] || {{ echo "rsync  version {version}"; exit; }}'
    )
    files = [write_file(upstream, b"%d" % i, b"") for i in range(2001)]
    options = TransferOptions(program=wrapper, extra=BY_RSYNC)
    assert down.fetch(files, str(upstream), options).arrived == files
    lines = (tmp_path / "calls").read_text().splitlines()
    assert len(lines) == runs
    assert all(("--trust-sender" in line) == (version == "3.2.5") for line in lines)


def test_bandwidth_is_shared_by_the_streams_that_there_are(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    files = [write_file(upstream, b"%d" % i, b"") for i in range(4)]
    limits = TransferOptions(streams=2, batch_files=1, bwlimit=900)
    options = replace(limits, program=recording_rsync(tmp_path), extra=BY_RSYNC)
    down.fetch(files, str(upstream), options)
    assert (tmp_path / "calls").read_text().count("--bwlimit=450 ") == 4
