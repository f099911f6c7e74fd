"""`huai-client watch` by proxies that are of little use: they buffer, trickle, or hang up."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.client_watch import Watching, configure, watching
from tests.support.counting_proxy import counting
from tests.support.nginx import nginx
from tests.support.processes import until
from tests.support.upstream import Downstream, Site, Upstream
from tests.support.weak_network import Weakness, weak

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
