"""The mirrors that hold a version of a file, by what they attested.

A mirror that attested the whole tree of a commit holds each of its files.  Runs in threads.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from huai_schema.entries import File, Symlink
from huai_schema.paths import RelPath
from huai_server.http.pages.recipes import download_urls
from huai_server.mirrors.states import MirrorState
from huai_server.store.repository import Head, Repository

_COMMITS = 8
"""The most commits in which a file is looked up."""
_random = SystemRandom()


class Holder(NamedTuple):
    """A mirror that holds a file."""

    state: MirrorState
    urls: Sequence[str]
    """The web addresses of the file; empty if the mirror serves it by rsync only."""


def holders(
    repository: Path,
    path: RelPath,
    entry: File | Symlink,
    states: Iterable[MirrorState],
    commits: Mapping[str, Head],
) -> list[Holder]:
    """Return the mirrors that hold `entry`, ordered as `states`; those that fail probes do not.

    `commits` are those by id in which it may be looked up.
    """
    opened = Repository(repository)
    holds: dict[str, bool] = {}
    results = []
    for state in states:
        commit = state.attestation.commit
        if state.attestation.partial or (state.probe and not state.probe.trusted):
            continue
        if commit not in holds and commit in commits and len(holds) < _COMMITS:
            holds[commit] = opened.snapshot(commits[commit])[1].leaf(path) == entry
        if holds.get(commit):
            results.append(Holder(state, download_urls(state.attestation.urls, path)))
    return results


def choose_url(holding: Iterable[Holder], country: str = "") -> str | None:
    """Return the address at one of the mirrors that serve the web and are offered; None without.

    Mirrors of `country` go before others, and the ones with the least lag; several of these share
    the load.
    """
    ranked: dict[tuple[bool, int], list[str]] = {}
    for state, urls in holding:
        if urls and state.offered:
            is_far = country.upper() not in {"", state.downstream.country}
            ranked.setdefault((is_far, state.lag), []).append(urls[0])
    return _random.choice(ranked[min(ranked)]) if ranked else None
