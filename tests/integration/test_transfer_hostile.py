"""A sender that brings other things than it was asked for: they get no further than staging.

With --trust-sender, rsync takes them; and the administrator's own options may let it make symlinks
and devices.
"""

import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.staging import Staging
from huai_schema.entries import File
from tests.support.rsyncd import rsync_daemon
from tests.support.transfers import TEST_OPTIONS, Downstream, write_file
from tests.support.weak_network import Weakness, weak

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
