"""Processes that end while a sync runs: itself, a hook, its rsync, the daemon, the server."""

import os
import signal
from pathlib import Path

import pytest

from huai_client.config import load as client_config
from huai_client.config.hooks import Hooks
from tests.fault.scenarios.sync import hooked
from tests.fault.story import Story, finish
from tests.support.processes import descendants, is_running, until
from tests.support.staged import bytes_in
from tests.support.upstream import Downstream, Pair, Site, ended

LARGE = 100_000
"""Bytes of a file that takes a while."""


@pytest.fixture(name="large")
def large_pair(place: Site) -> Pair:
    up = place.upstream()
    for number in range(30):
        up.put(b"large/%d" % number, os.urandom(LARGE))
    up.commit()
    return up, place.downstream(up, bwlimit=800, batch_files=3)


def some_are_ready(down: Downstream, number: int) -> bool:
    """Return true if rsync has written so many complete files."""
    arrived = (down.dest / ".~tmp~" / "huai" / "incoming").glob("*/large/[0-9]*")
    return sum(bytes_in([path]) == LARGE for path in arrived) >= number


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal(large: Pair, number: int, code: int) -> None:
    up, down = large
    process = down.spawn("sync", down.name)
    until(lambda: some_are_ready(down, 5))
    children: set[int] = set()

    def an_rsync_runs() -> bool:  # none runs between two batches
        children.update(descendants(process.pid))
        return bool(children)

    until(an_rsync_runs)
    process.send_signal(number)
    done = ended(process)
    assert done.code == code
    assert "the next run continues from here" in done.err
    until(lambda: not any(map(is_running, children)))
    assert not down.state_file.exists()
    down.configure(bwlimit=0)
    assert down.synced()["received"] < 2_600_000
    finish(down, up)


def test_a_kill_in_the_hook_itself(story: Story, tmp_path: Path) -> None:
    down = story.downstream(tmp_path / "place", story.publish("b"))
    report = hooked(down, tmp_path)
    collect = client_config.load(down.root).module(down.name).hooks
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $PPID\n")
    killer.chmod(0o755)
    down.configure(hooks=Hooks(on_change=str(killer), after=str(killer)))
    assert down.process("sync", down.name).code == -signal.SIGKILL
    down.configure(hooks=collect)
    done = down.process("sync", down.name)
    assert done.code == 0
    assert "nothing new" in done.err
    assert {b"only-in-b", b"stays/1"} <= {*report.read_bytes().split(b"\0")}
    report.unlink()
    assert down.process("sync", down.name).code == 0
    assert not report.exists()
