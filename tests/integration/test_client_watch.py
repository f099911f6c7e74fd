"""`huai-client watch`: a sync follows each commit, whatever ends or stands in between."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from huai_client.config import load as client_config
from huai_client.state.paths import module_places
from huai_client.state.state import load
from tests.support.client_watch import QUICK, Watching, configure, watching
from tests.support.counting_proxy import counting
from tests.support.nginx import nginx
from tests.support.processes import children, descendants, is_running, until
from tests.support.static_files import publish_to
from tests.support.upstream import (
    SECONDS,
    Downstream,
    Pair,
    Site,
    Upstream,
    assert_equal,
    serving,
    site,
)
from tests.support.weak_network import Weakness, weak


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A site for a test that stops its server."""
    with site(tmp_path / "site") as own:
        yield own


def mirrored(place: Site, config: str = QUICK, **settings: Any) -> Pair:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up, **settings)
    configure(down, config)
    return up, down


def is_applied(up: Upstream, down: Downstream) -> Callable[[], bool]:
    """Commit; return a function that is true if the downstream is at that commit."""
    commit = up.commit().head.commit
    state = module_places(down.root, up.name).state
    return lambda: load(state).applied == commit


def ended(processes: Iterable[int]) -> Callable[[], bool]:
    return lambda: not any(map(is_running, processes))


def change(up: Upstream, down: Downstream, text: bytes) -> None:
    """Commit a change, which has to arrive."""
    up.put(b"a", text)
    until(is_applied(up, down))


def test_a_commit_is_synced_when_it_is_made(place: Site) -> None:
    up, down = mirrored(place)
    with watching(down) as watch:
        watch.wait("subscribed", modules=[up.name])
        watch.wait("ended", module=up.name, code=0)
        for text in (b"22", b"333"):
            change(up, down, text)
            watch.wait("told", module=up.name)
        assert watch.end() == 143
    assert_equal(up, down)
    assert watch.count("sync", module=up.name) >= 2  # a sync's own lines are passed on


def test_an_upstream_that_was_away_is_heard_again(own: Site) -> None:
    """Killed, and started again; commits from meanwhile come too."""
    up, down = mirrored(own)
    with watching(down) as watch:
        watch.wait("subscribed")
        watch.wait("ended")
        own.server.kill()
        own.server.wait(SECONDS)
        watch.wait("unsubscribed")
        up.put(b"b", b"meanwhile")
        arrived = is_applied(up, down)
        port = own.url.rpartition(":")[2]
        with serving(own.folder / "server", "--port", port):
            watch.wait("subscribed")
            until(arrived)
    assert_equal(up, down)


def test_another_url_stands_in(own: Site) -> None:
    with serving(own.folder / "server") as (second, url):
        up, down = mirrored(own, url=(own.url, url))
        with watching(down) as watch:
            watch.wait("subscribed", url=own.url)
            watch.wait("ended")
            own.server.send_signal(signal.SIGTERM)
            watch.wait("subscribed", url=url)
            change(up, down, b"22")
        assert second.poll() is None


def reload_damaged(watch: Watching, down: Downstream) -> None:
    """Reload at a signal, while the configuration cannot be read."""
    path = client_config.config_path(down.root)
    before = path.read_bytes()
    configure(down, "[modules\n")
    watch.process.send_signal(signal.SIGHUP)
    until(lambda: "stay unchanged" in watch.errors)
    path.write_bytes(before)


def test_a_watcher_under_nohup_reloads_at_a_signal(place: Site) -> None:
    _, down = mirrored(place)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with watching(down, PYTHONUNBUFFERED="1") as watch:  # a variable: a child of this process
            watch.wait("subscribed")
            reload_damaged(watch, down)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_new_module_is_taken_at_a_signal(place: Site) -> None:
    up, down = mirrored(place)
    other = place.upstream()
    other.put(b"x", b"1")
    other.commit()
    dest = place.folder / f"dest-{other.name}"
    dest.mkdir()
    with watching(down) as watch:
        watch.wait("subscribed")
        watch.wait("ended")
        reload_damaged(watch, down)
        module = client_config.Module(url=place.url, dest=str(dest))
        client_config.add_module(down.root, other.name, module)
        watch.process.send_signal(signal.SIGHUP)
        watch.wait("subscribed", modules=sorted([up.name, other.name]))
        watch.wait("ended", module=other.name, code=0)
        change(up, down, b"22")
        change(other, Downstream(other.name, dest, down.root), b"22")


def add_slow_hook(down: Downstream, folder: Path) -> Path:
    """Let syncs wait before they begin; return the file that such a sync creates."""
    hook = folder / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {folder}/begun\nexec sleep 1000\n")
    hook.chmod(0o755)
    configure(down, f'[modules.{down.name}.hooks]\nbefore = ["{hook}"]\n')
    return folder / "begun"


def test_a_crash_of_a_sync_or_a_listener_ends_no_other_process(place: Site, tmp_path: Path) -> None:
    _, down = mirrored(place)
    begun = add_slow_hook(down, tmp_path)
    with watching(down) as watch:
        watch.wait("subscribed")
        until(begun.exists)
        for child in children(watch.process.pid):
            os.kill(child, signal.SIGKILL)
        watch.wait("ended", module=down.name, code=137, name=None)
        until(lambda: "ended (137); it is restarted" in watch.errors)
        watch.wait("subscribed")
        assert watch.process.poll() is None


def test_a_signal_ends_a_sync_that_runs(place: Site, tmp_path: Path) -> None:
    _, down = mirrored(place)
    begun = add_slow_hook(down, tmp_path)
    with watching(down) as watch:
        until(begun.exists)
        below = descendants(watch.process.pid)
        assert len(below) > 2
        assert watch.end() == 143
        until(ended(below))


def test_no_process_stays_after_a_kill(place: Site) -> None:
    up, down = mirrored(place)
    with watching(down) as watch:
        watch.wait("subscribed")
        below = descendants(watch.process.pid)
        watch.end(signal.SIGKILL)
        until(ended(below))
    with watching(down):
        change(up, down, b"22")


def test_an_upstream_without_events_is_polled(place: Site, tmp_path: Path) -> None:
    only_metadata = f"if ($uri ~ events) {{ return 404; }} proxy_pass {place.url};"
    with nginx(tmp_path, location=only_metadata) as proxy:
        polling = '\n[watch]\nspread = "0"\npoll = "1s"\n'
        up, down = mirrored(place, polling, url=proxy.url)
        with watching(down, up.name) as watch:
            watch.wait("unsubscribed", message=f"{proxy.url}: sends no events")
            for text in (b"22", b"333"):
                change(up, down, text)
            assert watch.count("subscribed") == 0


def test_a_commit_that_is_announced_before_it_is_served_is_asked_for_again(
    place: Site, tmp_path: Path
) -> None:
    """As a copy of static files, or a CDN that keeps the head for some seconds, does."""
    location = f"try_files $uri @serve; }} location @serve {{ proxy_pass {place.url};"
    with nginx(tmp_path, location=location) as copy:
        up, down = mirrored(place, url=copy.url)
        publish_to(tmp_path, up)
        with watching(down) as watch:
            watch.wait("subscribed")
            watch.wait("ended", module=up.name, code=0)
            up.put(b"a", b"22")
            applied = is_applied(up, down)
            watch.wait("told", module=up.name)
            watch.wait("ended", module=up.name, code=0)
            assert not applied()
            publish_to(tmp_path, up)
            until(applied)


def test_the_service_manager_is_notified(place: Site, short_path: Path) -> None:
    _, down = mirrored(place)
    path = str(short_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(SECONDS)
        manager.bind(path)
        messages = b""
        with watching(down, NOTIFY_SOCKET=path, WATCHDOG_USEC="1000000") as watch:
            while messages.count(b"WATCHDOG=1") < 3:
                messages += manager.recv(1000) + b"\n"
            assert watch.end() == 143
        assert messages.startswith(b"READY=1\n")
        assert b"STATUS=watching 1 module" in messages
        while b"STOPPING=1" not in messages:
            messages += manager.recv(1000)


def test_it_ends_quietly_at_any_moment(place: Site) -> None:
    """Also while a sync has just begun, and is not huai-client yet."""
    _, down = mirrored(place)
    for moment in range(8):
        with watching(down) as watch:
            watch.wait("watching")
            time.sleep(moment / 200)
            assert watch.end() == 143


def test_wrong_names_are_refused(place: Site) -> None:
    _, down = mirrored(place)
    assert down.process("watch", "nonsense").code == 45
    configure(down, "[watch.more]\n")
    assert down.process("watch").code == 40


TRICKLE = 300
"""Bytes a second: an event takes a second, and the head of the answer another."""
FIRST_EVENT = 700
"""Bytes after which a line is cut: the head of the answer and an event, and half of the next."""


class Proxied:
    """A watcher that hears of an upstream by a proxy; all else has a good line."""

    def __init__(self, up: Upstream, down: Downstream, watch: Watching) -> None:
        self.up = up
        self.down = down
        self.watch = watch

    def change(self, text: bytes) -> None:
        """Commit a change, which has to arrive."""
        self.up.put(b"a", text)
        commit = self.up.commit().head.commit
        until(lambda: self.down.state.applied == commit)


@contextmanager
def proxied(place: Site, folder: Path, events: str, *, poll: str) -> Iterator[Proxied]:
    """`events` are nginx's directives for them."""
    location = f"""proxy_http_version 1.1; proxy_ignore_headers X-Accel-Buffering;
        location /api/v1/events {{ {events} }} proxy_pass {place.url};"""
    with nginx(folder, location=location) as proxy:
        up = place.upstream()
        up.put(b"a", b"1")
        up.commit()
        down = place.downstream(up, url=proxy.url)
        configure(down, f'\n[watch]\nspread = "0"\npoll = "{poll}"\n')
        with watching(down, up.name) as watch:
            watch.wait("ended", module=up.name, code=0)
            yield Proxied(up, down, watch)


def test_a_trickle_is_slow_and_heard(place: Site, tmp_path: Path) -> None:
    with ExitStack() as stack:
        line = stack.enter_context(weak(place.url, Weakness(pace=TRICKLE)))
        events = f"proxy_pass http://{line};"
        behind = stack.enter_context(
            proxied(place, tmp_path, f"proxy_buffering off; {events}", poll="1h")
        )
        behind.watch.wait("subscribed")
        behind.change(b"22")
        behind.change(b"333")
        assert behind.watch.count("told", module=behind.up.name) >= 2
        assert behind.watch.count("unsubscribed") == 0


def test_a_proxy_that_buffers_leaves_polling(place: Site, tmp_path: Path) -> None:
    """It waits for more than ever comes, and passes on nothing."""
    with ExitStack() as stack:
        line = stack.enter_context(weak(place.url, Weakness(most=1, stalls=True)))
        events = f"proxy_pass http://{line};"
        behind = stack.enter_context(proxied(place, tmp_path, events, poll="1s"))
        behind.change(b"22")
        behind.change(b"333")
        assert behind.watch.count("subscribed") == behind.watch.count("told") == 0


@pytest.mark.parametrize("most", [FIRST_EVENT, 1])
def test_an_upstream_that_flaps_is_not_stormed(place: Site, tmp_path: Path, most: int) -> None:
    """Each connection is cut, after an event or at once: polling goes on, asking gets rare."""
    with weak(place.url, Weakness(most=most)) as line, counting(f"http://{line}") as counted:
        events = f"proxy_buffering off; proxy_pass {counted.url};"
        with proxied(place, tmp_path, events, poll="1s") as behind:
            for number in range(4):
                behind.change(b"of %d" % number)
            behind.watch.wait("unsubscribed")
            assert behind.watch.process.poll() is None
        assert counted.connections < 10
