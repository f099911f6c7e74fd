"""Finds out with one small listing whether an upstream has anything new.

Probes are files that an upstream writes with each update: the list that it publishes, or the time
stamp of its last update.  The daemon reads the attributes of these names, and nothing else.
"""

import fnmatch
import io
from collections.abc import Sequence
from typing import NamedTuple

from huai_client.config.mirror import ListSettings
from huai_client.metadata.source.daemon import ListedDaemon
from huai_client.metadata.source.recent import shortest_interval
from huai_native._native import EntryList

_STAMPS = (b"lastsync", b"lastupdate", b"TIME", b"TIMESTAMP", b"timestamp", b".timestamp")
"""The time stamps of Arch Linux, Alpine, CPAN and many others."""
_TRACES = (b"project/trace/master", b"project/trace/ftp-master.debian.org")
_LISTS = "fullfiletimelist-*"
_ENTRIES_MOST = 1 << 22
"""The most entries of one folder that are kept in memory."""


def find_published(daemon: ListedDaemon) -> str:
    """Return the name of the list that the upstream publishes in its top directory, or empty.

    Of several that `quick-fedora-mirror` reads, returns the first by name; else the newest file of
    File::Rsync::Mirror::Recent.
    """
    entries = _empty()
    daemon.list_top(entries)
    paths = (path for path, kind, *_ in entries.entries() if kind == "file")
    names = sorted(path.decode() for path in paths if path.isascii())
    return min(fnmatch.filter(names, _LISTS), default="") or shortest_interval(names)


def find_probes(daemon: ListedDaemon) -> tuple[str, ...]:
    """Return the paths of the upstream's time stamps that have a usual name, sorted."""
    entries = _empty()
    daemon.list_names((*_STAMPS, *_TRACES), entries)
    paths = (path for path, kind, *_ in entries.entries() if kind == "file")
    return tuple(sorted(path.decode() for path in paths))


def lists_beside(published: str) -> tuple[bytes, ...]:
    """Return the names of lists that `create-filelist` writes next to this one, and of itself.

    They do not name each other.
    """
    suffix = published.partition("-")[2]
    return (published.encode(), b"fullfilelist", b"imagelist-" + suffix.encode())


def probe(daemon: ListedDaemon, probes: Sequence[str]) -> str:
    """Return the attributes of the files at `probes`, as a text that changes with any of them."""
    entries = _empty()
    daemon.list_names((path.encode() for path in probes), entries)
    return repr([each for each in entries.entries() if each[1] == "file"])


class Listing(NamedTuple):
    """How an upstream is listed."""

    text: str
    """A sentence that says how, and at what cost to the upstream."""
    request: str = ""
    """A sentence for its administrator: what would cost both sides less; may be empty."""


_LIST_REQUEST = (
    "please publish a list of the tree with each update (huai-server, or create-filelist of "
    "quick-fedora-mirror), so that mirrors need not list all of it to learn what changed"
)
_STAMP_REQUEST = (
    "please write a file `lastsync` at the top of the tree with each update, so that mirrors need "
    "not list all of it to learn whether anything changed"
)


def describe(daemon: ListedDaemon, settings: ListSettings) -> Listing:
    """Return how an upstream is listed; may ask `daemon`."""
    if settings.probe:
        text = f"{settings.probe} tells whether anything is new; then all of it is listed"
        return Listing(text, _LIST_REQUEST)
    if published := find_published(daemon):
        return Listing(f"it publishes {published}, and only what that list names is asked for")
    if probes := find_probes(daemon):
        text = f"{', '.join(probes)} tells whether anything is new; then all of it is listed"
        return Listing(text, _LIST_REQUEST)
    return Listing(
        f"nothing there tells whether anything is new, so all of it is listed, at most once in "
        f"{settings.every / 60:.0f} minutes; that costs it as much as rsync -an",
        _STAMP_REQUEST,
    )


def _empty() -> EntryList:
    return EntryList(io.BytesIO(), _ENTRIES_MOST)
