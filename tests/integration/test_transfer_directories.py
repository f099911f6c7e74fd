"""Directories that rsync requests as a whole, because the commit lists just the wanted files."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.staging import Staging
from huai_client.transfer.options import TransferOptions
from huai_schema.entries import Directory, File
from huai_schema.paths import RelPath, ancestors
from tests.support.rsyncd import CHROOTS, rsync_daemon
from tests.support.schema.trees import snapshot, tree_of
from tests.support.transfers import BY_RSYNC, TEST_OPTIONS, Downstream, write_file

SIZE = 600_000


class Upstream:
    """A folder with listed files, and the names that each run of rsync requests."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.program = folder / "rsync"
        self._log = folder / "requests"
        self.program.write_text(
            f'#!/bin/sh\nexport names="{folder}/$$"\ncat > "$names"\n'
            f'[ "$1" = --version ] || {{ cat "$names"; echo; }} >> {self._log}\n'
            'exec rsync "$@" < "$names"\n'
        )
        self.program.chmod(0o755)

    def write_directory(self, name: bytes, size: int = 3) -> list[File]:
        return [write_file(self.root, name + b"/%d" % each, os.urandom(size)) for each in range(3)]

    def options(self, files: Sequence[File], batch_files: int = 100) -> TransferOptions:
        """Options for a transfer of the commit that lists `files`."""
        directories = {path for file in files for path in ancestors(file.path) if path}
        listed = tree_of(*files, *(Directory(path, 0) for path in directories))
        return replace(
            TEST_OPTIONS,
            snapshot=snapshot(listed),
            program=str(self.program),
            extra=BY_RSYNC,
            streams=1,
            batch_files=batch_files,
        )

    def requests(self) -> list[list[bytes]]:
        """The names that each run has requested."""
        runs = self._log.read_bytes().splitlines()
        return [[name.removeprefix(b"./") for name in run.split(b"\0")[:-1]] for run in runs]


@pytest.fixture
def listed(upstream: Path, tmp_path: Path) -> Upstream:
    return Upstream(upstream, tmp_path)


def staged_files(down: Downstream) -> list[bytes]:
    """The paths of all files below the runs' folders."""
    left = [path for path in down.root.glob("incoming/**/*") if not path.is_dir()]
    return sorted(os.fsencode(path.relative_to(down.root)).split(b"/", 2)[2] for path in left)


def test_a_directory_is_requested_by_one_name(listed: Upstream, down: Downstream) -> None:
    files = [*listed.write_directory(b"a"), *listed.write_directory(b"b/c")]
    options = listed.options(files)
    assert down.fetch(files, str(listed.root), options).arrived == files
    assert listed.requests() == [[b"a/", b"b/c/"]]
    assert staged_files(down) == [file.path for file in files]


@pytest.mark.parametrize("chroot", CHROOTS)
def test_a_directory_may_have_any_name(listed: Upstream, down: Downstream, chroot: str) -> None:
    odd_names = (
        b"-rf",
        b"#a",
        b" b ",
        b"new\nline",
        b"\xff",
        b"*",
        b"[a]?",
        b"u@h::m",
        b"d/" * 40 + b"e",
    )
    files = [file for name in odd_names for file in listed.write_directory(b"top/" + name)]
    for top in (b"", b"top/"):
        below = [file._replace(path=RelPath(file.path.removeprefix(top))) for file in files]
        options = replace(listed.options(below), program="rsync", extra=())
        with rsync_daemon({"m": listed.root}, use_chroot=chroot) as url:
            outcome = down.fetch(below, f"{url}/m/{top.decode()}", options)
        assert outcome.arrived == below


def test_a_file_that_the_commit_does_not_list_is_not_kept(
    listed: Upstream, down: Downstream
) -> None:
    files = listed.write_directory(b"a")
    options = listed.options(files)
    write_file(listed.root, b"a/new", b"newer than the commit")
    (listed.root / "a/symlink").symlink_to("new")
    assert down.fetch(files, str(listed.root), options).arrived == files
    assert listed.requests() == [[b"a/"]]
    assert staged_files(down) == [file.path for file in files]


def test_a_file_that_vanished_is_missing(listed: Upstream, down: Downstream) -> None:
    files = listed.write_directory(b"a")
    options = listed.options(files)
    (listed.root / "a/1").unlink()
    outcome = down.fetch(files, str(listed.root), options)
    assert (outcome.arrived, outcome.missing) == ([files[0], files[2]], [files[1]])
    assert listed.requests() == [[b"a/"], [b"a/1"]]


def test_a_file_that_changed_is_not_requested_again(listed: Upstream, down: Downstream) -> None:
    files = listed.write_directory(b"a")
    options = listed.options(files)
    write_file(listed.root, b"a/1", b"new")
    outcome = down.fetch(files, str(listed.root), options)
    assert (outcome.arrived, outcome.mismatched) == ([files[0], files[2]], [files[1]])
    assert listed.requests() == [[b"a/"]]


def test_files_of_a_directory_that_cannot_be_read_arrive_by_name(
    listed: Upstream, down: Downstream
) -> None:
    files = [*listed.write_directory(b"open"), *listed.write_directory(b"secret")]
    (listed.root / "secret").chmod(0o311)
    options = replace(listed.options(files), program="rsync", extra=())
    with rsync_daemon({"m": listed.root}, uid="65534", gid="65534") as url:
        assert down.fetch(files, f"{url}/m", options).arrived == files


def test_a_directory_that_holds_far_more_is_requested_by_name(
    listed: Upstream, down: Downstream
) -> None:
    files = [file for name in (b"a", b"b", b"c", b"d") for file in listed.write_directory(name)]
    for number in range(5):
        write_file(listed.root, b"a/unlisted-%d" % number, os.urandom(SIZE))
    options = listed.options(files, batch_files=3)
    outcome = down.fetch(files, str(listed.root), options)
    assert outcome.arrived == files
    assert not down.listener.retries
    requests = listed.requests()
    later = requests[requests.index([b"a/"]) + 1 :]
    # The next run may have begun before the result of this one was known.
    assert sum(run[0].endswith(b"/") for run in later) <= 1
    with Staging(down.root) as staging:
        staging.drop_partials([])
        assert staged_files(down) == [file.path for file in files]


def test_a_directory_may_be_a_symlink_at_another_mirror(
    listed: Upstream, down: Downstream, tmp_path: Path
) -> None:
    files = listed.write_directory(b"a")
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "a").symlink_to(listed.root / "a")
    assert down.fetch(files, str(mirror), listed.options(files)).arrived == files
    assert listed.requests() == [[b"a/"]]


def test_what_arrived_is_not_requested_again(listed: Upstream, down: Downstream) -> None:
    files = listed.write_directory(b"a")
    options = listed.options(files)
    down.fetch(files[:1], str(listed.root), options)
    assert down.fetch(files, str(listed.root), options).arrived == files
    assert listed.requests() == [[b"a/0"], [b"a/1", b"a/2"]]
