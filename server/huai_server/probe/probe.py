"""A probe of the mirrors of one module with random files of the commit that each one attests.

The result for a mirror is recorded next to its attestation before the next mirror is probed.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from huai_schema.entries import File
from huai_schema.errors import ExitCode
from huai_schema.layout.snapshot import Snapshot, leaves_from
from huai_schema.paths import RelPath, show
from huai_server.config.load import ServerConfig
from huai_server.config.mirrors import AllowedDownstream
from huai_server.config.volatile import Volatile
from huai_server.fallback.programs import find
from huai_server.mirrors.record import (
    Holding,
    Probe,
    Verdict,
    holding_path,
    probe_path,
    read_holding,
    read_probe,
    write_probe,
)
from huai_server.probe.fetch import Finding, compare
from huai_server.state.paths import mirrors_folder, module_places
from huai_server.store.repository import Head, Repository

_COMMITS = 5000
_SPARE = 8
"""The factor of extra candidates, to replace links, changed files and large ones."""
_WORST = ("wrong", "missing", "failed")
_VERDICTS: Mapping[str, Verdict] = {"wrong": "lies", "missing": "stale", "failed": "unreachable"}
_CODES: Mapping[Verdict, ExitCode] = {
    "good": ExitCode.OK,
    "lies": ExitCode.MISMATCH,
    "stale": ExitCode.DIFFERS,
    "unreachable": ExitCode.NETWORK,
}


class Probed(NamedTuple):
    """The result of probing one mirror."""

    mirror: str
    probe: Probe
    before: Verdict | None = None
    """The verdict of the previous probe; None for the first one."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: OK unless the mirror lies, or is bad now and was bad before."""
        lasts = self.probe.verdict == "lies" or self.before not in (None, "good")
        return _CODES[self.probe.verdict] if lasts else ExitCode.OK


def probe_mirrors(root: Path, config: ServerConfig, name: str) -> Iterator[Probed]:
    """Probe each mirror that attested a commit of the module; write each result, then yield it.

    `root` is the state root, `name` the module's.  Yields nothing without a repository.
    """
    folder, places = mirrors_folder(root), module_places(root, name)
    if not places.repository.exists():
        return
    run = _Run(config, name, Repository(places.repository))
    for mirror, allowed in config.allowed_downstreams.items():
        holding = read_holding(holding_path(folder, name, mirror), allowed.key)
        if holding is not None:
            place = probe_path(folder, name, mirror)
            before = read_probe(place)
            probed = Probed(mirror, run.probe(holding, allowed), before.verdict if before else None)
            write_probe(place, probed.probe)
            yield probed


class _Run:
    """The probes of the mirrors of one module."""

    def __init__(self, config: ServerConfig, name: str, repository: Repository) -> None:
        self._settings = config.mirrors
        self._program = config.fallback.rsync
        self._is_volatile = Volatile(config.module(name).volatile)
        self._repository = repository

    def probe(self, holding: Holding, allowed: AllowedDownstream) -> Probe:
        """Fetch random files of the attested commit at each URL; the worst finding decides.

        URLs that `allowed` may not claim are left out.  The verdict is "stale" if the commit is no
        longer kept, and "good" if nothing could be compared.
        """
        attestation, now = holding.attestation, int(time.time())
        heads = [*islice(self._repository.history(), _COMMITS)]
        head = next((each for each in heads if each.commit == attestation.commit), None)
        if head is None:
            reason = "the attested commit is no longer kept"
            return Probe(now, "stale", attestation.serial, reason=reason)
        urls = [url for url in attestation.urls if allowed.may_claim(url)]
        findings = [*self._findings(head, heads[0], urls, partial=attestation.partial)]
        bad = sorted(
            (each for each in findings if each.kind != "good"),
            key=lambda each: _WORST.index(each.kind),
        )
        files = sum(each.kind in {"good", "wrong"} for each in findings)
        if not bad:
            return Probe(now, "good", attestation.serial, files)
        worst = bad[0]
        path = show(worst.path) if worst.path else ""
        return Probe(now, _VERDICTS[worst.kind], attestation.serial, files, path, worst.reason)

    def _findings(
        self, head: Head, newest: Head, urls: list[str], *, partial: bool
    ) -> Iterator[Finding]:
        """Yield the findings of random files at each URL, as many as `probe_bytes` allows in all.

        `partial`: missing files are no findings.
        """
        totals, left = head.info.totals, self._settings.probe_bytes
        for url in urls:
            files = _sample(
                self._snapshot(head),
                self._snapshot(newest),
                totals.files + totals.symlinks,
                self._settings.probe_files,
                self._is_volatile,
            )
            affordable = []
            for file in files:
                if file.size <= left:
                    left -= file.size
                    affordable.append(file)
            if affordable:
                program, internal = find(self._program), self._settings.internal
                findings = compare(url, affordable, program, internal=internal)
                # A partial mirror may lack files.
                yield from (each for each in findings if not (partial and each.kind == "missing"))

    def _snapshot(self, head: Head) -> Snapshot:
        return self._repository.snapshot(head)[1]


def _sample(
    attested: Snapshot,
    newest: Snapshot,
    leaves: int,
    most: int,
    is_volatile: Callable[[bytes], bool],
) -> list[File]:
    """Return at most `most` regular files of `attested` that have the same content in `newest`.

    Files without a digest and volatile files are left out.
    Chosen at random with equal chances from the `leaves` files and symlinks of `attested`: reads
    all manifests, but parses few lines.
    """
    places = sorted(random.sample(range(leaves), min(leaves, most * _SPARE)))
    candidates = [
        each
        for each in _leaves_at(attested, places)
        if each.digest is not None
        and not is_volatile(each.path)
        and _is_same(newest, each.path, each.digest)
    ]
    random.shuffle(candidates)
    return candidates[:most]


def _leaves_at(snapshot: Snapshot, places: list[int]) -> Iterator[File]:
    """Yield the regular files among the leaves with the numbers `places`, which are ascending."""
    remaining, begin = iter(places), 0
    place = next(remaining, None)
    for listing in snapshot.listings():
        if place is None:
            return
        end = begin + listing.leaves.count(b"\n")
        while place is not None and place < end:
            leaf = next(leaves_from(listing, place - begin), None)
            if isinstance(leaf, File):
                yield leaf
            place = next(remaining, None)
        begin = end


def _is_same(newest: Snapshot, path: RelPath, digest: bytes) -> bool:
    """True if `newest` has a file with this digest at `path`."""
    leaf = newest.leaf(path)
    return isinstance(leaf, File) and leaf.digest == digest
