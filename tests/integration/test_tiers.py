"""Three tiers end to end: signed on the first, handed on by the second, proved on the third."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_watch import Watching, configure, watching
from tests.support.keys import key, write_key
from tests.support.prepared import SERVER, Started
from tests.support.processes import until
from tests.support.relaying import Relay, relaying
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Downstream,
    Site,
    Upstream,
    ended,
    serving,
    site,
)

PINNED: dict[str, Any] = {"keys": (key(1).public,), "verify": "require"}


@dataclass
class Tiers:
    """Real programs, each of which can be killed."""

    up: Upstream
    first: Site
    relay: Relay
    last: Downstream
    stack: ExitStack

    def commit(self, path: bytes, content: bytes) -> None:
        """Commit a file on the first tier, by the program."""
        self.up.put(path, content)
        words = ["--root", str(self.up.root), "commit", self.up.name]
        done = ended(Started(SERVER, words, ENVIRONMENT, stdout=-1, stderr=-1, text=True))
        assert done.code == 0, done

    def arrives(self, path: bytes, content: bytes) -> None:
        """Wait until the last tier has published it."""
        place = self.last.dest / path.decode()
        until(lambda: place.exists() and place.read_bytes() == content)

    def watch(self, down: Downstream) -> Watching:
        """Let a tier watch until the end of the test."""
        watch = self.stack.enter_context(watching(down))
        watch.wait("subscribed")
        return watch


@pytest.fixture
def tiers(tmp_path: Path) -> Iterator[Tiers]:
    """The first two are in step; no tier watches yet."""
    with ExitStack() as stack:
        first = stack.enter_context(site(tmp_path / "first"))
        up = first.upstream()
        signer = write_key(tmp_path / "key", key(1))
        config = up.root / "server.toml"
        config.write_text(f'{config.read_text()}\n[signing]\nkey = "{signer}"\n')
        middle = first.downstream(up, **PINNED)
        configure(middle)
        relay = stack.enter_context(relaying(middle, tmp_path / "second"))
        last = relay.downstream(**PINNED)
        configure(last)
        tiers = Tiers(up, first, relay, last, stack)
        tiers.commit(b"a", b"1")
        middle.synced()
        until(lambda: relay.serial == 1)
        yield tiers


def test_killed_in_the_middle_it_catches_up(tiers: Tiers) -> None:
    """The client while it has news, and the server with it: each goes on where it was."""
    tiers.watch(tiers.last)
    with watching(tiers.relay.down) as watch:
        watch.wait("subscribed")
        watch.wait("ended")  # of what it begins with, which could bring the news before it is told
        tiers.commit(b"b", b"killed")
        watch.wait("told")
        watch.end(signal.SIGKILL)
    tiers.relay.server.kill()
    tiers.relay.server.wait(SECONDS)
    tiers.commit(b"c", b"meanwhile")
    # The sync that the killed program had started may still be at work.
    tiers.relay.down.synced("--wait", str(SECONDS))
    port = tiers.relay.url.rpartition(":")[2]
    with serving(tiers.relay.root, "--port", port):
        tiers.arrives(b"b", b"killed")
        tiers.arrives(b"c", b"meanwhile")
        assert tiers.relay.serial == 3
        until(lambda: tiers.last.state.serial == 3 and not tiers.last.state.attempted)
        assert tiers.last.state.valid_until > 0
        assert tiers.last.state.relay_urls == (tiers.relay.content_url,)
        assert tiers.last.verify("--content").code == 0


def test_the_last_tier_believes_the_first_alone(tiers: Tiers) -> None:
    other = tiers.relay.downstream(keys=(key(2).public,), verify="require")
    assert other.sync().code == 57
    assert tiers.last.sync().code == 0
