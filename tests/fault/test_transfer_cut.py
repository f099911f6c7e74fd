"""Transfers cut in the middle: the next one continues from there."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.transfer.errors import ConnectionBrokenError
from huai_schema.entries import File
from tests.support.processes import descendants, until
from tests.support.rsyncd import rsync_daemon
from tests.support.staged import bytes_in
from tests.support.transfers import TEST_OPTIONS, Downstream, write_file

SIZE = 6_000_000
SLOW = replace(TEST_OPTIONS, bwlimit=2000, retries=0, streams=1)
FAST = replace(TEST_OPTIONS, retries=0, streams=1)


def _staged(down: Downstream) -> int:
    """Bytes that lie in incoming folders."""
    return bytes_in(down.root.glob("incoming/**/*"))


def _rsyncs(down: Downstream) -> list[int]:
    """The rsyncs that write to this downstream."""
    mine = []
    for pid in descendants(os.getpid()):
        try:
            folder = Path(f"/proc/{pid}/cwd").readlink()
        except OSError:
            continue
        if down.root in folder.parents:
            mine.append(pid)
    return mine


def _cut(
    down: Downstream,
    files: list[File],
    url: str,
    *,
    staged: int,
    kill: signal.Signals = signal.SIGKILL,
) -> None:
    """Fetch until so many bytes are staged; then end the rsyncs, and the fetch fails."""
    failures: list[BaseException] = []

    def fetch() -> None:
        try:
            down.fetch(files, url, SLOW)
        except ConnectionBrokenError as error:
            failures.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    until(lambda: _staged(down) > staged)
    for pid in _rsyncs(down):
        os.kill(pid, kill)
    thread.join(60)
    assert len(failures) == 1


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_rsync_is_continued(
    upstream: Path, down: Downstream, kill: signal.Signals
) -> None:
    file = write_file(upstream, b"sub/big", os.urandom(SIZE))
    small = write_file(upstream, b"a", b"small")
    with rsync_daemon({"m": upstream}) as url:
        _cut(down, [small, file], f"{url}/m", staged=SIZE // 3, kill=kill)
        assert down.listener.arrived == [b"a"]
        outcome = down.fetch([small, file], f"{url}/m", FAST)
    assert outcome.arrived == [small, file]
    assert outcome.bytes_received < SIZE * 0.8


def test_a_killed_rsync_is_continued_in_the_same_run(upstream: Path, down: Downstream) -> None:
    file = write_file(upstream, b"big", os.urandom(SIZE))
    outcomes = []

    def check_complete() -> None:
        options = replace(SLOW, retries=2)
        outcomes.append(down.fetch([file], f"{url}/m", options))

    with rsync_daemon({"m": upstream}) as url:
        thread = threading.Thread(target=check_complete)
        thread.start()
        until(lambda: _staged(down) > SIZE // 3)
        for pid in _rsyncs(down):
            os.kill(pid, signal.SIGKILL)
        thread.join(60)
    assert outcomes[0].arrived == [file]
    assert outcomes[0].bytes_received < SIZE * 0.8
    assert len(down.listener.retries) == 1


def test_a_delta_that_was_cut_still_profits_from_the_present_file(
    upstream: Path, down: Downstream
) -> None:
    old = os.urandom(SIZE)
    new = os.urandom(SIZE // 2) + old[SIZE // 2 :]
    write_file(down.dest, b"big", old)
    file = write_file(upstream, b"big", new, mtime=1_600_000_000_000_000_000)
    with rsync_daemon({"m": upstream}) as url:
        _cut(down, [file], f"{url}/m", staged=SIZE // 6)
        outcome = down.fetch([file], f"{url}/m", FAST)
    assert outcome.arrived == [file]
    assert outcome.bytes_received < SIZE * 0.4  # half is old, a sixth and more had arrived


def client(arguments: list[str]) -> None:
    """Run as the child of the next tests: fetch one file, slowly."""
    dest, url, path, size, mtime, digest = arguments
    file = File(
        path=os.fsencode(path),  # type: ignore[arg-type]
        size=int(size),
        mtime=int(mtime),
        digest=bytes.fromhex(digest),
    )
    Downstream(Path(dest)).fetch([file], url, SLOW)


def _client(down: Downstream, url: str, file: File) -> subprocess.Popen[bytes]:
    assert file.digest is not None
    code = "import sys; from tests.fault.test_transfer_cut import client; client(sys.argv[1:])"
    facts = [os.fsdecode(file.path), str(file.size), str(file.mtime), file.digest.hex()]
    return subprocess.Popen(
        [sys.executable, "-c", code, str(down.dest), url, *facts],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_client_is_continued_and_leaves_no_rsync(
    upstream: Path, down: Downstream, kill: signal.Signals
) -> None:
    file = write_file(upstream, b"sub/big", os.urandom(SIZE))
    with rsync_daemon({"m": upstream}) as url, _client(down, f"{url}/m", file) as process:
        until(lambda: _staged(down) > SIZE // 3)
        rsyncs = descendants(process.pid)
        assert rsyncs
        process.send_signal(kill)
        errors = process.communicate(timeout=60)[1]
        if kill == signal.SIGINT:
            assert b"KeyboardInterrupt" in errors
            assert not any(_writes(pid, down) for pid in rsyncs)
            assert 0 < _staged(down) < SIZE  # stopped, not waited for
        outcome = down.fetch([file], f"{url}/m", FAST)  # waits for an orphan to end
        assert not any(_writes(pid, down) for pid in rsyncs)
    assert outcome.arrived == [file]
    assert outcome.bytes_received < SIZE * 0.8


def _writes(pid: int, down: Downstream) -> bool:
    try:
        return down.root in Path(f"/proc/{pid}/cwd").readlink().parents
    except OSError:
        return False


def test_complete_files_of_a_cut_batch_are_not_fetched_again(
    upstream: Path, down: Downstream
) -> None:
    small = [write_file(upstream, b"%03d" % i, os.urandom(20_000)) for i in range(20)]
    big = write_file(upstream, b"big", os.urandom(SIZE))
    with rsync_daemon({"m": upstream}) as url:
        _cut(down, [*small, big], f"{url}/m", staged=SIZE // 3)
        assert sorted(down.listener.arrived) == sorted(file.path for file in small)
        down.fetch([*small, big], f"{url}/m", FAST)
    assert down.listener.totals[-1] == (1, SIZE)
