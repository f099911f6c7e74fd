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
    upstream = Upstream(short_path)
    for path in (".sums.sha256", ".index.SHA512", "d/.htaccess.BACKUP", "d/f"):
        upstream.write(path, path)
    source = short_path / "source"
    source.mkdir()
    (source / "big.iso").write_bytes(os.urandom(SIZE))
    return upstream


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
        os.killpg(process.pid, signal.SIGKILL)  # rsync's receiver is another process
        process.wait(SECONDS)


def unfinished(upstream: Upstream) -> list[Path]:
    return [path for path in upstream.tree.rglob(".big.iso.??????") if path.stat().st_size]


REAL = {".sums.sha256", ".index.SHA512", "d", "d/.htaccess.BACKUP", "d/f"}


@pytest.mark.parametrize("options", [(), ("--chmod=F664",)])
def test_a_file_that_rsync_writes_is_left_out_and_reported(
    upstream: Upstream, options: tuple[str, ...]
) -> None:
    """Names alone do not tell: lists of checksums end like a temporary name."""
    with slow_rsync(upstream, *options):
        result = upstream.commit()
        assert upstream.paths() == REAL
        (remark,) = result.remarks
        assert (remark.kind, remark.number) == ("temporary", 1)
        assert result.exit_code == 0
    # Its file is not mirrored after it was killed either, today or in a year.
    (left,) = unfinished(upstream)
    for age in (0, 1 << 25):
        os.utime(left, (time.time() - age, time.time() - age))
        result = upstream.commit()
        assert upstream.paths() == REAL
        (remark,) = result.remarks
        assert [*remark.paths] == [os.fsencode(left.name)]


def test_the_staging_of_delayed_updates_is_left_out_and_reported(upstream: Upstream) -> None:
    upstream.write("../source/aaa", "x")
    with slow_rsync(upstream, "--delay-updates"):
        assert (upstream.tree / ".~tmp~").is_dir()
        result = upstream.commit()
        assert upstream.paths() == REAL
        assert {remark.kind for remark in result.remarks} == {"temporary", "reserved"}
