"""Commits while rsync writes in the tree, and after one that was killed there."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.committing import SECONDS, Upstream
from tests.support.processes import until

SIZE = 4 << 20


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    found = Upstream(short_path)
    for path in (".sums.sha256", ".index.SHA512", "d/.htaccess.BACKUP", "d/f"):
        found.write(path, path)
    source = short_path / "source"
    source.mkdir()
    (source / "big.iso").write_bytes(os.urandom(SIZE))
    return found


@contextmanager
def slow_rsync(upstream: Upstream, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """An rsync in the middle of `big.iso`."""
    source = upstream.tree.with_name("source")
    command = ["rsync", "-a", "--bwlimit=200", *options, f"{source}/", f"{upstream.tree}/"]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        until(lambda: unfinished(upstream))
        assert process.poll() is None
        yield process
    finally:
        with_children(process)
        process.wait(SECONDS)


def with_children(process: subprocess.Popen[bytes]) -> None:
    """rsync's receiver is a process of its own."""
    os.killpg(process.pid, signal.SIGKILL)


def unfinished(upstream: Upstream) -> list[Path]:
    return [path for path in upstream.tree.rglob(".big.iso.??????") if path.stat().st_size]


REAL = {".sums.sha256", ".index.SHA512", "d", "d/.htaccess.BACKUP", "d/f"}


@pytest.mark.parametrize("options", [(), ("--chmod=F664",)])
def test_what_rsync_is_writing_is_left_out_and_told(
    upstream: Upstream, options: tuple[str, ...]
) -> None:
    """Names alone tell nothing: lists of checksums end like a temporary name."""
    with slow_rsync(upstream, *options):
        result = upstream.commit()
        assert upstream.paths() == REAL
        (remark,) = result.remarks
        assert (remark.kind, remark.number) == ("temporary", 1)
        assert result.exit_code == 0
    # Killed: what it left is not mirrored either, today or in a year.
    (left,) = unfinished(upstream)
    for age in (0, 1 << 25):
        os.utime(left, (time.time() - age, time.time() - age))
        result = upstream.commit()
        assert upstream.paths() == REAL
        assert [os.fsencode(left.name)] == [path for each in result.remarks for path in each.paths]


def test_the_staging_of_delayed_updates_is_left_out_and_told(upstream: Upstream) -> None:
    upstream.write("../source/aaa", "x")
    with slow_rsync(upstream, "--delay-updates"):
        assert (upstream.tree / ".~tmp~").is_dir()
        result = upstream.commit()
        assert upstream.paths() == REAL
        assert {each.kind for each in result.remarks} == {"temporary", "reserved"}
