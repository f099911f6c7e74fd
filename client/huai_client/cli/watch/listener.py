"""A process that stays connected to an upstream, and says what it hears as lines of JSON.

A process of its own, so that an upstream that answers nothing holds up nobody, and whatever an
answer does to it ends there.  The lines: `{"up": URL}`, `{"down": URL, "reason": …}`, and each
commit as the upstream tells of it.

Rules: of several URLs the first that answers is heard, and left for the first again after a
while; when none answers, or connections do not last, the pauses double, with jitter.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from huai_client.cli.parallel.child import forget_handlers
from huai_client.config.mirror import Mirror
from huai_client.config.tls import TlsError, TlsFiles
from huai_client.metadata.events import NoEventsError, Told, listen
from huai_client.metadata.http import MetadataUrl, UpstreamError, is_http, server_and_module

_FIRST_PAUSE, _LONGEST_PAUSE = 4.0, 300.0
"""Seconds, of which half is chance: a server that starts anew has many downstreams."""
_NO_EVENTS_PAUSE = 1800.0
"""Before one that tells nothing is asked again."""
_LASTING = 60.0
"""A connection of so many seconds was a good one."""
_PACE = 0.001
"""Seconds for each message: an upstream that sends without end takes little of this machine."""
_STAND_IN_SECONDS = 600.0
"""So long another than the first is heard, before the first is tried again."""

Say = Callable[[dict[str, object]], None]


class Source(NamedTuple):
    """Where to hear of which modules."""

    urls: tuple[MetadataUrl, ...]
    """Base addresses of huai servers, best first."""
    modules: tuple[tuple[str, str], ...]
    """Sorted: as they are called there, and as they are called here."""

    @property
    def key(self) -> str:
        """What tells it from others; no module is called so."""
        return repr(self)


def sources(mirrors: Iterable[Mirror]) -> list[Source]:
    """Whom to ask about these modules: one connection for all with the same addresses."""
    found: dict[tuple[MetadataUrl, ...], set[tuple[str, str]]] = {}
    for mirror in mirrors:
        upstream = mirror.upstream_name
        named = [server_and_module(url, upstream) for url in mirror.config.urls if is_http(url)]
        if named:
            bases = dict.fromkeys(url for url, _ in named)
            tls = TlsFiles.of(mirror.config.tls, bases)
            urls = tuple(MetadataUrl(url, tls) for url in bases)
            found.setdefault(urls, set()).add((named[0][1], mirror.name))
    return [Source(urls, tuple(sorted(names))) for urls, names in found.items()]


def listen_alone(source: Source) -> int:
    """The work of the process; it ends by a signal."""
    forget_handlers()

    def say(line: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    failures = 0
    while True:
        pause, lasted = _round(source, say)
        failures = 0 if lasted else failures + 1
        usual = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures, 10))
        most = max(usual, pause)
        time.sleep(random.uniform(most / 2, most))  # noqa: S311 - so that not all come at once


def _round(source: Source, say: Say) -> tuple[float, bool]:
    """Hear the first URL that answers, to its end; the least pause, and whether it lasted."""
    pauses: list[float] = []
    for position, base in enumerate(source.urls):
        began = time.monotonic()
        until = began + _STAND_IN_SECONDS if position else float("inf")
        try:
            if _hear(base, source, until, say):
                return 0, True
        except NoEventsError as error:
            say({"down": str(base), "reason": error.message})
            pauses.append(_NO_EVENTS_PAUSE)
        except (UpstreamError, TlsError) as error:
            say({"down": str(base), "reason": error.message})
            pauses.append(getattr(error, "retry_after", 0.0))
        if time.monotonic() - began > _LASTING:
            return 0, True
    return min(pauses, default=0), False


def _hear(base: MetadataUrl, source: Source, until: float, say: Say) -> bool:
    """Say what comes; whether the connection lasted until it was given up."""
    up = False
    for told in listen(base, (called for called, _ in source.modules)):
        if not up:
            say({"up": str(base)})
            up = True
        if told is not None:
            say(_as_line(told))
        time.sleep(_PACE)
        if time.monotonic() > until:
            return True
    say({"down": str(base), "reason": f"{base}: the connection was ended there"})
    return False


def _as_line(told: Told) -> dict[str, object]:
    return dict(msgspec.structs.asdict(told))
