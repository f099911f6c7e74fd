"""Long runs on a terminal: what they show, and that they leave nothing of it."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.committing import NAME
from tests.support.prepared import CLIENT, SERVER
from tests.support.sharded import configure, cut_upstream
from tests.support.terminal import terminal
from tests.support.upstream import Site, Upstream

LONG = 60 << 30
"""The bytes of a file of holes that takes many seconds to read."""


def test_it_counts_what_it_scanned_and_read(up: Upstream) -> None:
    for number in range(40):
        up.put(b"more/%d" % number)
    os.truncate(up.put(b"holes"), LONG)
    with terminal(SERVER, "--root", str(up.root), "commit", up.name) as screen:
        screen.until(" files scanned, ")
        screen.until(" GiB read")
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 130
        left = screen.read().rpartition("\x1b[2K")[2]
        assert ("scanned" in left, "interrupted" in left) == (False, True)


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_program_that_reads_its_output_sees_none(up: Upstream, option: str) -> None:
    os.truncate(up.put(b"holes"), LONG // 10)
    with terminal(SERVER, "--root", str(up.root), "commit", up.name, option) as screen:
        assert screen.ended() == 0
        assert "scanned" not in screen.read()


def test_it_counts_the_shards_of_an_engine(short_path: Path) -> None:
    upstream = cut_upstream(short_path)
    configure(upstream)
    os.truncate(upstream.write("large/holes"), LONG)
    words = ("commit", NAME, "--engine", "local://2")
    with terminal(SERVER, "--root", str(upstream.root), *words) as screen:
        screen.until(" shards")
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 130


def test_a_verify_counts_what_it_looked_at_and_read(place: Site, up: Upstream) -> None:
    down = place.downstream(up)
    down.dest.mkdir(exist_ok=True)
    for holes in (up.put(b"holes"), down.dest / "holes"):
        holes.touch()
        os.truncate(holes, LONG)
        os.utime(holes, (1, 1))
    up.commit()
    down.synced("--adopt")
    words = ("--root", str(down.root), "verify", down.name, "--content")
    with terminal(CLIENT, *words) as screen:
        screen.until(" looked at, ")
        screen.until(" GiB read")
        screen.process.send_signal(signal.SIGINT)
        assert screen.ended() == 130
