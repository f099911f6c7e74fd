"""Processes that end while a sync runs: itself, a hook, its rsync, the daemon, the server."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from huai_client.config import load as client_config
from huai_client.config.hooks import Hooks
from tests.fault.sampling import ALL
from tests.fault.scenarios.sync import hooked
from tests.fault.story import Story, finish
from tests.support.processes import descendants, is_running, until
from tests.support.rsyncd import rsync_daemon
from tests.support.staged import bytes_in
from tests.support.system_calls import CHANGING, Cut, supervise
from tests.support.upstream import Downstream, Pair, Site, ended, serving

LARGE = 100_000
"""Bytes of a file that takes a while."""


@pytest.mark.slow
def test_cut_again_and_again(story: Story, tmp_path: Path) -> None:
    """Towards one commit, then the other, cut each time, a little later."""
    down = story.downstream(tmp_path, story.publish("b"))
    step = 20 if ALL else 60
    for point in range(step, 200, step):
        up = story.publish("b" if point // step % 2 else "c")
        down.configure(content_urls=(str(up.tree),))
        # The serial goes back and forth, which no upstream's does.
        state = down.state_file.read_text()
        down.state_file.write_text(state.replace('"serial": 3', '"serial": 1'))
        supervise(CHANGING, lambda: down.sync().code, Cut(point))
    up = story.publish("back")
    down.configure(content_urls=(str(up.tree),))
    finish(down, up)


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


def test_nothing_complete_is_fetched_twice(large: Pair) -> None:
    up, down = large
    process = down.spawn("sync", down.name)
    until(lambda: some_are_ready(down, 10))
    process.kill()
    process.communicate()
    down.configure(bwlimit=0)
    result = down.synced()
    assert 0 < result["received"] < 2_100_000
    finish(down, up)


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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_dead_daemon(large: Pair, place: Site) -> None:
    up, down = large
    before = descendants(os.getpid())
    with rsync_daemon({"trees": place.folder / "trees"}) as url:
        daemon = descendants(os.getpid()) - before
        down.configure(content_urls=(f"{url}/trees/{up.name}",))
        process = down.spawn("sync", down.name)
        until(lambda: some_are_ready(down, 5))
        for pid in daemon | {child for each in daemon for child in descendants(each)}:
            with suppress(ProcessLookupError):  # one may have ended with another
                os.kill(pid, signal.SIGKILL)
        done = ended(process, seconds=240)
        assert done.code == 10, done
        assert down.state.applied is None
    down.configure(bwlimit=0, content_urls=())
    assert down.synced()["received"] < 2_600_000
    finish(down, up)


def test_a_dead_server(place: Site) -> None:
    up = place.upstream()
    up.many(b"folder", 10)
    up.commit()
    down = place.downstream(up)
    with serving(up.root) as (server, url):
        down.configure(url=url)
        down.synced()
        server.kill()
        server.wait()
        up.put(b"new", b"1")
        up.commit()
        done = down.sync()
        assert done.code == 10
    with serving(up.root) as (_, url):
        down.configure(url=url)
        down.synced()
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
