"""Failures around a commit of shards: a table of real processes.

A process that is killed, or refused a call, is in `test_kills`; a worker, in the tests of engines.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from huai_program.locking import locked
from huai_schema.errors import ExitCode
from tests.fault.test_full_disks import filled
from tests.support.committing import (
    SECONDS,
    Upstream,
    run_server,
    server_command,
    server_environment,
)
from tests.support.mounting import needs_mounts, with_own_mounts
from tests.support.sharded import configure, cut_upstream, whole_id

pytestmark = needs_mounts


class Place(NamedTuple):
    """An upstream whose share is a small disk, and with a file system at `pool/m`."""

    upstream: Upstream
    disk: Path
    jobs: Path

    @property
    def mounted(self) -> Path:
        return self.upstream.tree / "pool/m"

    def scan(self, path: str, before: str = "", *node: str) -> None:
        """Scan a shard by a command, on a node if one is given."""
        arguments = ["shard", "m", path, "--to", str(self.jobs)]
        python, flag, program, *rest = server_command(self.upstream.root, *arguments)
        subprocess.run(
            [*node, python, flag, before + program, *rest],
            env=server_environment(),
            check=True,
            capture_output=True,
            timeout=SECONDS,
        )

    def scan_all(self, *node: str) -> None:
        for path in ("pool/a", "pool/b", "pool/m", "small"):
            self.scan(path, "", *node)


@contextmanager
def mount(place: Path) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True, timeout=SECONDS)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, timeout=SECONDS)


@pytest.fixture
def place(short_path: Path, disk: Path) -> Iterator[Place]:
    upstream = cut_upstream(short_path)
    with mount(upstream.tree / "pool/m"):
        for number in range(9):
            upstream.write(f"pool/m/{number}", "m")
        configure(upstream, mounts=True, share=str(disk))
        yield Place(upstream, disk, short_path / "jobs")


BY_ENGINE = ("--engine", "local://2")


def nothing(_: Place) -> None:
    pass


def other_version(place: Place) -> None:
    place.scan_all()
    place.scan("small", "import huai_schema; huai_schema.__version__ = '0.0.1'; ")


def unmounted_on_a_node(place: Place) -> None:
    script = f'umount --lazy {place.mounted} && exec "$@"'
    place.scan_all(*with_own_mounts(script))


def is_missing(place: Place) -> None:
    """The coordinator sees it, the node does not."""
    script = f'mount --bind {place.jobs.parent / "empty"} {place.mounted.parent} && exec "$@"'
    (place.jobs.parent / "empty").mkdir()
    for path in ("pool/a", "pool/b", "small"):
        place.scan(path)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        place.scan("pool/m", "", *with_own_mounts(script))
    assert b"it vanished" in failed.value.stderr


def lose_packs(place: Place) -> None:
    place.scan_all()
    for pack in place.jobs.glob("*.pack"):
        pack.unlink()


class Failure(NamedTuple):
    """Something wrong, the exit code, and what is done until the next commit."""

    arguments: tuple[str, ...]
    code: int
    before: Callable[[Place], object] = nothing
    around: Callable[[Place], AbstractContextManager[object]] = nullcontext


FAILURES = {
    "the share is full": Failure(
        BY_ENGINE, ExitCode.FILE_IO, around=lambda place: filled(place.disk)
    ),
    "two coordinators": Failure(
        BY_ENGINE, ExitCode.LOCKED, around=lambda place: locked(place.upstream.places.lock)
    ),
    "a version": Failure(("--from-shards", "jobs"), ExitCode.REQUIREMENT, other_version),
    "a node without the mount": Failure(
        ("--from-shards", "jobs"), ExitCode.INCOMPLETE, unmounted_on_a_node
    ),
    "packs are missing": Failure(("--from-shards", "jobs"), ExitCode.INCOMPLETE, lose_packs),
    "a node without the root": Failure(("--from-shards", "jobs"), ExitCode.INCOMPLETE, is_missing),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_the_branch_is_old_or_new(place: Place, tmp_path: Path, failure: Failure) -> None:
    upstream = place.upstream
    upstream.commit()
    head, paths = upstream.head, upstream.paths()
    upstream.write("pool/m/new", "new")
    failure.before(place)
    arguments = [str(place.jobs) if each == "jobs" else each for each in failure.arguments]
    with failure.around(place):
        done = run_server(upstream.root, "commit", "m", *arguments)
        assert done.returncode == failure.code, done.stderr
    assert upstream.paths() == paths
    assert failure.code == ExitCode.INCOMPLETE or upstream.head == head
    shutil.rmtree(place.jobs, ignore_errors=True)
    done = run_server(upstream.root, "commit", "m", *BY_ENGINE)
    assert done.returncode == 0, done.stderr
    assert upstream.entries_id == whole_id(upstream, tmp_path / "whole", mounts=True)[0]
    upstream.prove_sound()
    assert not (place.disk / "m/results").exists()
