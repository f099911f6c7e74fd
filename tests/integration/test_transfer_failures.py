"""Transfers that cannot go on, or bring what was not requested: each ends in its own error."""

import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.staging import Staging
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    DiskFullError,
    RsyncRequirementError,
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.options import TransferOptions
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from tests.support.listening import listening
from tests.support.mounting import needs_mounts
from tests.support.processes import run_program
from tests.support.rsyncd import rsync_daemon
from tests.support.transfers import BY_RSYNC, TEST_OPTIONS, Downstream, Recorder, write_file
from tests.support.weak_network import Weakness, weak

T0 = 1_600_000_000_123_456_789


@contextmanager
def _listening(greeting: bytes) -> Iterator[str]:
    """A server that says `greeting` and nothing more, for any number of clients."""
    with ExitStack() as clients:

        def greet(client: socket.socket) -> None:
            clients.enter_context(client).sendall(greeting)

        with listening(greet) as port:
            yield f"rsync://127.0.0.1:{port}/m"


@pytest.mark.parametrize("scheme", ["rsync", "http"])
def test_nobody_listens(upstream: Path, down: Downstream, scheme: str) -> None:
    """Two tries, and what is said of them is the error."""
    dead, options = f"{scheme}://127.0.0.1:1/m", replace(TEST_OPTIONS, retries=100)
    with pytest.raises(ConnectionBrokenError, match=r"127\.0\.0\.1") as caught:
        down.fetch([write_file(upstream, b"a", b"1")], dead, options)
    assert caught.value.exit_code == ExitCode.NETWORK
    assert "is running" in caught.value.hint
    assert down.listener.retries == []
    assert down.listener.ends == 1
    with pytest.raises(ConnectionBrokenError):
        down.fetch([write_file(upstream, b"a", b"1")], [dead, "rsync://127.0.0.1:2/m"], options)
    assert len(down.listener.retries) == 2, "a line for each"


class _Stopping(Recorder):
    """Stops a server when the first file is here."""

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__()
        self._stop = stop

    def finished(self, files: Sequence[File]) -> None:
        super().finished(files)
        self._stop()


def test_a_daemon_that_has_answered_is_asked_as_often_as_ever(
    upstream: Path, down: Downstream
) -> None:
    """Only what is down from the beginning is given up sooner: a daemon may start again."""
    options = replace(TEST_OPTIONS, retries=4, streams=1, batch_files=1)
    # Some runs of rsync may be ahead of the first file's verdict, but not that many.
    files = [write_file(upstream, b"%d" % number, b"1") for number in range(30)]
    with ExitStack() as stack:
        url = stack.enter_context(rsync_daemon({"m": upstream}))
        down.listener = _Stopping(stack.close)
        with pytest.raises(ConnectionBrokenError):
            down.fetch(files, f"{url}/m", options)
    assert len(down.listener.retries) >= 5, "of each stream"


def test_an_unknown_module_is_not_asked_for_twice(upstream: Path, down: Downstream) -> None:
    with rsync_daemon({"m": upstream}) as url, pytest.raises(UpstreamRefusedError) as caught:
        down.fetch([write_file(upstream, b"a", b"1")], f"{url}/other")
    assert "Unknown module 'other'" in caught.value.message
    assert down.listener.retries == []
    with pytest.raises(UpstreamRefusedError, match="no content URL"):
        down.fetch([write_file(upstream, b"a", b"1")], [])


def test_below_a_missing_folder_of_a_module_each_file_is_missing(
    upstream: Path, down: Downstream, url: str
) -> None:
    """A folder of this machine that is missing is refused instead."""
    file = write_file(upstream, b"a", b"1")
    assert down.fetch([file], f"{url}/absent").missing == [file]
    assert down.fetch([file], [f"{url}/absent", url]).arrived == [file]
    down = Downstream(down.dest.with_name("other"))
    options = replace(TEST_OPTIONS, extra=BY_RSYNC)
    with pytest.raises(UpstreamRefusedError, match="change_dir"):
        down.fetch([file], f"{upstream}/absent", options)


@pytest.mark.parametrize(
    "refused", [("--inplace",), ("--sparse",), ("--inplace", "--sparse")], ids=" ".join
)
def test_options_that_a_daemon_refuses_are_left_out(
    upstream: Path, down: Downstream, refused: tuple[str, ...]
) -> None:
    small, large = write_file(upstream, b"a", b"1"), write_file(upstream, b"b", os.urandom(500_000))
    # 3.1 does not tell what was refused, and needs a retry for each option.
    options = replace(TEST_OPTIONS, retries=2, streams=2, batch_bytes=500_000, hosts=Hosts())
    names = " ".join(option.removeprefix("--") for option in refused)
    with rsync_daemon({"m": upstream}, refuse_options=names) as url:
        assert down.fetch([small, large], f"{url}/m", options).arrived == [small, large]
        assert options.hosts.refused_options(url) >= {*refused}
        again = replace(options, retries=0)
        later = write_file(upstream, b"c", b"2")
        assert down.fetch([later], f"{url}/m", again).arrived == [later]


def test_an_option_that_cannot_be_left_out_is_named(upstream: Path, down: Downstream) -> None:
    file, options = write_file(upstream, b"a", b"1"), replace(TEST_OPTIONS, retries=0)
    # 3.1 loses the daemon's words when the connection is reset; it is a failure all the same.
    refused = pytest.raises(TransferError, match=r"refuse --files-from|reset by peer")
    with rsync_daemon({"m": upstream}, refuse_options="files-from") as url, refused:
        down.fetch([file], f"{url}/m", options)


@pytest.mark.parametrize("greeting", [b"", b"@RSYNCD: 31.0\n"])
def test_a_silent_server_is_given_up(upstream: Path, down: Downstream, greeting: bytes) -> None:
    options = TransferOptions(timeout=1, contimeout=1, retries=0)
    with _listening(greeting) as url, pytest.raises(UpstreamSilentError) as caught:
        down.fetch([write_file(upstream, b"a", b"1")], url, options)
    assert caught.value.exit_code == ExitCode.TIMEOUT


def test_a_server_that_speaks_something_else(upstream: Path, down: Downstream) -> None:
    file, options = write_file(upstream, b"a", b"1"), TransferOptions(timeout=2, retries=0)
    hello = b"HTTP/1.0 400 Bad Request\r\n\r\n" * 10
    with _listening(hello) as url, pytest.raises(TransferError) as caught:
        down.fetch([file], url, options)
    assert caught.value.message.isprintable()


def test_one_connection_serves_two_streams(upstream: Path, down: Downstream) -> None:
    files = [write_file(upstream, b"%d" % i, os.urandom(400_000)) for i in range(12)]
    options = replace(TEST_OPTIONS, streams=2, batch_files=2, retries=0, bwlimit=16_000)
    with rsync_daemon({"m": upstream}, max_connections="1") as url:
        outcome = down.fetch(files, f"{url}/m", options)
    assert outcome.arrived == files
    assert any("max connections (1)" in reason for reason in down.listener.waits)
    assert down.listener.retries == []


def test_a_server_that_stays_full_is_given_up(upstream: Path, down: Downstream) -> None:
    options = replace(TEST_OPTIONS, patience=0.2)
    full = b"@RSYNCD: 31.0\n@ERROR: max connections (25) reached -- try again later\n"
    with _listening(full) as url, pytest.raises(UpstreamFullError) as caught:
        down.fetch([write_file(upstream, b"a", b"1")], url, options)
    assert down.listener.waits
    assert caught.value.hint


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("rsync  version 3.0.9  protocol version 30", False),
        ("rsync  version 2.6.9  protocol version 29", False),
        ("openrsync: protocol version 29", False),
        ("", False),
        ("rsync  version 3.1.3  protocol version 31", True),
        ("rsync  version v3.4.1  protocol version 32", True),
        ("rsync  version 10.0  protocol version 40", True),
    ],
)
def test_old_rsyncs_are_refused(
    upstream: Path, down: Downstream, tmp_path: Path, version: str, *, accepted: bool
) -> None:
    program = tmp_path / "rsync"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{version}"; exit 0; }}\nexec rsync "$@"\n'
    )
    program.chmod(0o755)
    file = write_file(upstream, b"a", b"1")
    options = TransferOptions(program=str(program), extra=BY_RSYNC)
    if accepted:
        assert down.fetch([file], str(upstream), options).complete
    else:
        with pytest.raises(RsyncRequirementError):
            down.fetch([file], str(upstream), options)


@contextmanager
def _small_disk(place: Path) -> Iterator[None]:
    place.mkdir()
    run_program("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place, check=True)
    try:
        yield
    finally:
        run_program("umount", place, check=True)


@needs_mounts
@pytest.mark.parametrize("extra", [(), BY_RSYNC])
def test_a_full_disk_ends_it_at_once_and_room_finishes_it(
    upstream: Path, tmp_path: Path, extra: tuple[str, ...]
) -> None:
    files = [write_file(upstream, b"%d" % i, os.urandom(500_000)) for i in range(6)]
    one = replace(TEST_OPTIONS, streams=1, batch_files=1, extra=extra)
    options = replace(one, retries=5, backoff=60)
    with _small_disk(tmp_path / "dest"):
        down = Downstream(tmp_path / "dest")
        with pytest.raises(DiskFullError) as caught:
            down.fetch(files, str(upstream), options)
        assert caught.value.exit_code == ExitCode.FILE_IO
        assert 1 <= len(down.listener.arrived) <= 4
        run_program("mount", "-o", "remount,size=20m", down.dest, check=True)
        before = len(down.listener.arrived)
        assert down.fetch(files, str(upstream), options).arrived == files
        assert len(down.listener.arrived) == len(files)
        assert down.listener.totals[-1][0] == len(files) - before


@needs_mounts
def test_a_destination_that_cannot_be_written(upstream: Path, tmp_path: Path) -> None:
    file = write_file(upstream, b"a", b"1")
    with _small_disk(tmp_path / "dest"):
        down = Downstream(tmp_path / "dest")
        down.fetch([], str(upstream))
        run_program("mount", "-o", "remount,ro", down.dest, check=True)
        with pytest.raises(HuaiError, match="Read-only") as caught:
            down.fetch([file], str(upstream))
    assert caught.value.exit_code in (ExitCode.FILE_IO, ExitCode.DESTINATION)


CONTENT = b"what the metadata say"
SIZE = 1000
WHATEVER = replace(TEST_OPTIONS, extra=("-rlptgoD",), retries=0)
"""Options with which rsync makes everything that is sent."""


def link_to_a_file(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "one")


def link_to_a_directory(place: Path, outside: Path) -> None:
    place.parent.rmdir()
    place.parent.symlink_to(outside)


def directory(place: Path, outside: Path) -> None:
    place.mkdir()
    (place / "inside").write_bytes(CONTENT)
    (place / "link").symlink_to(outside)


def pipe(place: Path, _outside: Path) -> None:
    os.mkfifo(place)


def unix_socket(place: Path, _outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as node:
        node.bind(str(place))


def device(place: Path, _outside: Path) -> None:
    os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero: never read to its end


_NODES = [link_to_a_file, link_to_a_directory, directory, pipe, unix_socket]
_OF_ROOT = [device] if os.geteuid() == 0 else []


@pytest.mark.parametrize("plant", [*_NODES, *_OF_ROOT])
def test_what_is_no_file_is_not_staged(
    upstream: Path, down: Downstream, short_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    outside = short_path / "outside"
    outside.mkdir()
    file, other = write_file(upstream, b"d/one", CONTENT), write_file(upstream, b"e/two", b"2")
    twin = write_file(outside, b"one", CONTENT, mtime=file.mtime)
    assert twin.digest == file.digest
    (upstream / "d/one").unlink()
    plant(upstream / "d/one", outside)
    with rsync_daemon({"m": upstream}, use_chroot="no", munge_symlinks="no") as url:
        outcome = down.fetch([file, other], f"{url}/m", WHATEVER)
        assert outcome.arrived == [other]
        assert outcome.failed == [file]
        assert only_staged(down, [other])
        assert [path.name for path in outside.iterdir()] == ["one"]
        remove(upstream)
        write_file(upstream, b"d/one", CONTENT, mtime=file.mtime)
        assert down.fetch([file, other], f"{url}/m", WHATEVER).arrived == [file, other]
    assert (outside / "one").stat().st_mtime_ns == file.mtime


def test_another_file_is_not_staged(upstream: Path, down: Downstream) -> None:
    file, other = write_file(upstream, b"d/wanted", CONTENT), write_file(upstream, b"e/two", b"2")
    write_file(upstream, b"d/unasked", b"another content")
    write_file(upstream, b"d/wantee", CONTENT)

    def change(request: bytes) -> bytes:
        return request.replace(b"d/wanted\0", b"d/wantee\0")

    with rsync_daemon({"m": upstream}) as daemon, weak(daemon, Weakness(), change) as line:
        outcome = down.fetch([file, other], f"rsync://{line}/m")
    assert outcome.arrived == [other]
    assert outcome.missing == [file]
    assert only_staged(down, [other])


def test_a_directory_brings_nothing_more_with_it(upstream: Path, down: Downstream) -> None:
    file = write_file(upstream, b"d/wanted", CONTENT)
    more = write_file(upstream, b"more/and", os.urandom(SIZE))

    def change(request: bytes) -> bytes:
        return request.replace(b"d/wanted\0", b".///more\0")

    with rsync_daemon({"m": upstream}) as daemon, weak(daemon, Weakness(), change) as line:
        outcome = down.fetch([file], f"rsync://{line}/m", WHATEVER)
    assert outcome.missing == [file]
    assert outcome.bytes_received > SIZE  # it did come
    assert only_staged(down, [])
    with Staging(down.root) as staging:
        staging.incoming.recover([file])
        assert not staging.ready(more)


def test_what_was_verified_is_not_replaced_by_a_later_run(upstream: Path, down: Downstream) -> None:
    first, second = (
        write_file(upstream, b"d/first", CONTENT),
        write_file(upstream, b"d/other", CONTENT),
    )
    changed: list[bytes] = []

    def change(request: bytes) -> bytes:
        if b"d/other\0" in request:  # brings the name of the first, and other content
            write_file(upstream, b"d/first", CONTENT[::-1], mtime=first.mtime)
            changed.append(request)
        return request.replace(b"d/other\0", b"d/first\0")

    options = replace(TEST_OPTIONS, streams=1, batch_files=1, retries=0)
    with rsync_daemon({"m": upstream}) as daemon, weak(daemon, Weakness(), change) as line:
        outcome = down.fetch([first, second], f"rsync://{line}/m", options)  # checks what is ready
    assert len(changed) == 1
    assert outcome.arrived == [first]
    assert outcome.missing == [second]


def only_staged(down: Downstream, files: list[File]) -> bool:
    """Return True if only `files` are in the staging area."""
    with Staging(down.root) as staging:
        staging.incoming.recover(files)
        staging.drop_partials([])
        assert all(staging.ready(file) for file in files)
    left = [path for path in down.dest.rglob("*") if not stat.S_ISDIR(path.lstat().st_mode)]
    names = [path.name for path in left if path.name not in ("boot", "lock")]
    return sorted(names) == sorted(os.fsdecode(file.path).rpartition("/")[2] for file in files)


def remove(upstream: Path) -> None:
    """Remove what was planted at `d/one`."""
    place = upstream / "d"
    if place.is_symlink():
        place.unlink()
    elif (place / "one").is_dir() and not (place / "one").is_symlink():
        for path in (place / "one").iterdir():
            path.unlink()
        (place / "one").rmdir()
    else:
        (place / "one").unlink()
