"""A process that stays connected to an upstream, and prints its events as lines of JSON.

A separate process, so that an upstream that hangs blocks no other one, and a response that crashes
it does no further harm.  The lines: `{"up": URL}`, `{"down": URL, "reason": …}`, and the event of
each commit.

Rules: of several URLs the first that responds is used, and given up after a while to try the first
again; when none responds, or connections do not last, the pauses double, with jitter.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from huai_client.cli.parallel.children import forget_handlers
from huai_client.config.mirror import Mirror
from huai_client.config.tls import TlsError, TlsFiles
from huai_client.metadata.events import NoEventsError, listen
from huai_client.metadata.http import MetadataUrl, UpstreamError, is_http, server_and_module

_FIRST_PAUSE, _LONGEST_PAUSE = 4.0, 300.0
"""Seconds, half of them random: many downstreams wait for a restarted server."""
_NO_EVENTS_PAUSE = 1800.0
"""Seconds before an upstream without events is tried again."""
_LASTING = 60.0
"""Seconds after which a connection counts as a good one."""
_PACE = 0.001
"""Seconds for each message, so that an endless stream uses little of this machine."""
_STAND_IN_SECONDS = 600.0
"""Seconds of a connection to a later URL before the first one is tried again."""

PrintEvent = Callable[[dict[str, object]], None]


class WatchedUpstream(NamedTuple):
    """The servers of one upstream that announce commits, and the modules that come from it."""

    urls: tuple[MetadataUrl, ...]
    """The base URLs of huai servers, best first."""
    modules: tuple[tuple[str, str], ...]
    """The upstream's and the own name of each module, sorted."""

    @property
    def key(self) -> str:
        """A unique key, which is not the name of a module."""
        return repr(self)


def group_by_upstream(mirrors: Iterable[Mirror]) -> list[WatchedUpstream]:
    """Group modules by upstream: one connection for all with the same URLs.

    Leaves out modules without a URL of HTTP.
    """
    modules: dict[tuple[MetadataUrl, ...], set[tuple[str, str]]] = {}
    for mirror in mirrors:
        upstream = mirror.upstream_name
        servers = [server_and_module(url, upstream) for url in mirror.config.urls if is_http(url)]
        if servers:
            bases = dict.fromkeys(url for url, _ in servers)
            tls = TlsFiles.of(mirror.config.tls, bases)
            urls = tuple(MetadataUrl(url, tls) for url in bases)
            modules.setdefault(urls, set()).add((servers[0][1], mirror.name))
    return [WatchedUpstream(urls, tuple(sorted(names))) for urls, names in modules.items()]


def listen_alone(source: WatchedUpstream) -> int:
    """Print the events of `source` in a child process, reconnecting, until a signal ends it."""
    forget_handlers()

    def print_event(line: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    failures = 0
    while True:
        pause, lasted = _round(source, print_event)
        failures = 0 if lasted else failures + 1
        usual = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures, 10))
        most = max(usual, pause)
        time.sleep(random.uniform(most / 2, most))  # noqa: S311 - spreads the downstreams


def _round(source: WatchedUpstream, print_event: PrintEvent) -> tuple[float, bool]:
    """Listen to the first URL that responds, until the connection ends.

    Prints why others failed. Returns the least seconds to wait before the next round, and True if
    the connection lasted.
    """
    pauses: list[float] = []
    for position, base in enumerate(source.urls):
        began = time.monotonic()
        until = began + _STAND_IN_SECONDS if position else float("inf")
        try:
            if _listen(base, source, until, print_event):
                return 0, True
        except NoEventsError as error:
            print_event({"down": str(base), "reason": error.message})
            pauses.append(_NO_EVENTS_PAUSE)
        except (UpstreamError, TlsError) as error:
            print_event({"down": str(base), "reason": error.message})
            pauses.append(getattr(error, "retry_after", 0.0))
        if time.monotonic() - began > _LASTING:
            return 0, True
    return min(pauses, default=0), False


def _listen(
    base: MetadataUrl, source: WatchedUpstream, until: float, print_event: PrintEvent
) -> bool:
    """Print the events; return True if `until` was reached, False if the server ended it."""
    up = False
    for event in listen(base, (name for name, _ in source.modules)):
        if not up:
            print_event({"up": str(base)})
            up = True
        if event is not None:
            print_event(msgspec.structs.asdict(event))
        time.sleep(_PACE)
        if time.monotonic() > until:
            return True
    print_event({"down": str(base), "reason": f"{base}: the upstream closed the connection"})
    return False
