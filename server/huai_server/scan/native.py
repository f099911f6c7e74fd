"""The native scanner's frames (`native/tree`), made into what a scan yields.

Its threads read directories ahead, a bounded amount at a time; Python's own part is a few values a
directory.  A maintainer has to keep `_REASONS` in step with `_native.pyi`.
"""

import errno
import os
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from huai_native._native import ChangeList, Looked, Run, Scan
from huai_schema.codec.listing import Listing
from huai_schema.paths import RelPath, join
from huai_server.scan import exclude
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import (
    IDENTITY,
    KEEPS_CHANGING,
    LEFT_OUT,
    OUT_OF_RANGE,
    RESERVED,
    TEMPORARY,
    TIME,
    Problem,
    ScanError,
    Scanned,
    ScannedDirectory,
    ScanOptions,
    Unreadable,
    root_error,
)

_Directory: TypeAlias = tuple[
    bytes, bytes, bytes, bytes, bool, int, list[tuple[bytes, int]], int, int, int, int
]
"""As `_native.pyi` lists it."""
_REASONS = {
    -1: KEEPS_CHANGING,
    -2: OUT_OF_RANGE,
    -3: TIME,
    -4: RESERVED,
    -5: TEMPORARY,
}


def scan(root: Path, options: ScanOptions) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, as `huai_server.scan.scan` describes it."""
    begun: list[ScannedDirectory] = []
    for item in scan_runs(root, options, None):
        if isinstance(item, Run):
            continue
        if isinstance(item, ScannedDirectory) and item.goes_on:
            begun.append(item)
            continue
        if begun:
            yield _whole(begun)
        begun = []
        if isinstance(item, ScannedDirectory):
            begun = [item]
        else:
            yield item
    if begun:
        yield _whole(begun)


def scan_runs(root: Path, options: ScanOptions, watched: Collection[bytes] | None) -> Scanned:
    """The same, as `huai_server.scan.scan_runs` describes it; `watched` None: without runs."""
    found = _open(root, options)
    if watched is not None:
        found.watch(list(watched))
    try:
        for batch in found:
            for frame in batch:
                if isinstance(frame, Run):
                    yield frame
                elif len(frame) == 2:
                    path, reason = frame
                    yield Unreadable(RelPath(path), _reason(reason))
                else:
                    yield _directory(frame)
    except (MemoryError, OSError) as error:
        raise _exhausted(error) from None


def look(root: Path, options: ScanOptions, named: ChangeList, record: Path) -> Looked:
    """What stands at the paths of a list, as `huai_server.scan.look` describes it."""
    found = _open(root, options)
    try:
        return found.look(named, os.fsencode(record))
    except (MemoryError, OSError) as error:
        raise _exhausted(error) from None


def remarkable(looked: Looked) -> Iterator[ScannedDirectory]:
    """The directories about which there is something to say."""
    return map(_directory, looked.remarkable())


def unreadable(looked: Looked) -> Iterator[Unreadable]:
    """The directories that cannot be read."""
    for path, reason in looked.unreadable():
        yield Unreadable(RelPath(path), _reason(reason))


def _whole(parts: list[ScannedDirectory]) -> ScannedDirectory:
    """The directory that came in these parts."""
    first = parts[0]
    if len(parts) == 1:
        return first
    identities: list[bytes] = []
    before = 0
    for part in parts:
        identities += (
            IDENTITY.pack(*record[:6], record[6] + before, *record[7:])
            for record in IDENTITY.iter_unpack(part.identities)
        )
        before += len(part.listing.leaves)
    return first._replace(
        listing=first.listing._replace(leaves=b"".join(part.listing.leaves for part in parts)),
        identities=b"".join(identities),
        hardlinks=any(part.hardlinks for part in parts),
        problems=tuple(chain.from_iterable(part.problems for part in parts)),
        left_out=tuple(chain.from_iterable(part.left_out for part in parts)),
        unreadable=sum(part.unreadable for part in parts),
    )


def take_apart(run: Run) -> Iterator[ScannedDirectory]:
    """The directories of a run one by one, with the digests that are known."""
    for frame, digests in run.directories():
        found = _directory(frame)
        yield found._replace(listing=found.listing._replace(digests=digests))


def _open(root: Path, options: ScanOptions) -> Scan:
    patterns = [exclude.check_exclude(text) for text in options.exclude]
    names = OwnerNames()
    try:
        return Scan(
            os.fsencode(root),
            patterns,
            threads=max(1, options.threads),
            one_file_system=options.one_file_system,
            owners=(names.user, names.group) if options.owners else None,
        )
    except OSError as error:
        raise root_error(root, error) from None


def _directory(frame: _Directory) -> ScannedDirectory:
    name, attributes, leaves, identities, hardlinks, skipped, noticed, *others = frame
    unreadable, device, inode, file_system = others
    path = RelPath(name)
    return ScannedDirectory(
        Listing(path, attributes, leaves),
        identities,
        hardlinks,
        skipped,
        *_sorted(path, noticed) if noticed else ((), ()),
        unreadable,
        device,
        inode,
        file_system,
    )


def _sorted(
    directory: RelPath, noticed: list[tuple[bytes, int]]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Tell problems from what is left out."""
    everything = [
        Problem(join(directory, name) if name else directory, _reason(reason))
        for name, reason in noticed
    ]
    problems = tuple(each for each in everything if each.reason not in LEFT_OUT)
    return problems, tuple(each for each in everything if each.reason in LEFT_OUT)


def _reason(number: int) -> str:
    return os.strerror(number) if number > 0 else _REASONS[number]


def _exhausted(error: MemoryError | OSError) -> ScanError:
    said = os.strerror(errno.ENOMEM) if isinstance(error, MemoryError) else error.strerror
    return ScanError(
        f"the scan ran out of memory or of open files ({said})",
        hint="raise the limits of the process, or use fewer threads",
    )
