"""rsync's arguments for one batch.

Pure.  Every option is known to rsync 3.1.3.  The purpose of each:

    --times --ignore-times   keep times; never skip by rsync's own comparison, which also reads
                             --compare-dest and ignores sub-second changes
    --perms --chmod          staged files are private, and rsync, which opens a file once more to
                             set its mode, need not: verifying does, which has it open
    --sparse --partial       holes stay holes; an interrupted file is kept
    --from0 --files-from=-   the names, by a handle: no list file that could be exchanged
    --no-implied-dirs        parents are made here, not copied: no foreign modes or symlinks
    --compare-dest           the present file is the basis, if there is one that is not small;
                             absolute, since several security fixes to rsync refuse a relative
                             one with `..`
    --inplace                instead of --sparse, if all files are small and without a basis: no
                             temporary name and no rename.  A partial is recognised by its time.
                             A daemon that refuses one of the two does not get it again
    --max-size --info=skip   a file that grew since the metadata were made is skipped, and reported
    --trust-sender           if rsync knows it: else it compares each arriving name with each
                             requested one, as patterns, and refuses some names outright.  Files
                             that a sender adds end in our own staging folder, and are removed
"""

import os
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from huai_client.transfer.options import TransferOptions, without_secrets
from huai_client.transfer.urls import ContentUrl, Transport
from huai_native import _native
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot

_SLACK = 1 << 20
_FIXED = (
    "--times",
    "--ignore-times",
    "--perms",
    "--chmod=D700,F600",
    "--partial",
    "--from0",
    "--files-from=-",
    "--no-implied-dirs",
    "--no-motd",
    "--no-human-readable",
    "--info=progress2,stats2,skip1",
)


OPTIONAL = ("--inplace", "--sparse")
"""Options to leave out for a daemon that refuses them: both only save work."""
_TRUSTS_FROM = (3, 2, 5)
_SMALL = _SLACK + (256 << 10)
"""Result of `most` for files up to 256 KiB.  For them a temporary name costs a tenth of the
total, and holes save next to nothing."""


class Basis(NamedTuple):
    """The local data from which rsync may build files."""

    tree: bytes = b""
    """An absolute path; empty if none of the files is there."""
    partials: bool = False
    """True if the folder that rsync writes to has partials."""


class Sides(NamedTuple):
    """The capabilities and limits of the two sides of a transfer."""

    version: tuple[int, int, int] = (0, 0, 0)
    """The version of the local rsync."""
    refused: AbstractSet[str] = frozenset()
    """The options of `OPTIONAL` that the daemon refuses."""


_UNKNOWN = Sides()


def arguments(
    options: TransferOptions,
    url: ContentUrl,
    basis: Basis,
    bwlimit: int,
    largest: int,
    sides: Sides = _UNKNOWN,
) -> list[bytes]:
    """Return the whole command line; `bwlimit` (KiB/s, 0 for none) is this run's share.

    `largest` is the size limit of one file in bytes, as by `most`.
    """
    extra = options.extra if url.own else without_secrets(options.extra)
    command = [options.program, *extra, *_FIXED, f"--timeout={options.timeout}"]
    if url.transport is Transport.DAEMON and not has_shell(extra):
        command.append(f"--contimeout={options.contimeout}")
    if trusts_sender(sides.version):
        command.append("--trust-sender")
    # Older daemons refuse the two together, and sparse files are large.
    inplace = basis == Basis() and largest <= _SMALL and "--inplace" not in sides.refused
    writing = "--inplace" if inplace else "--sparse"
    if writing not in sides.refused:
        command.append(writing)
    if bwlimit:
        command.append(f"--bwlimit={bwlimit}")
    command.append(f"--max-size={largest}")
    encoded = [os.fsencode(argument) for argument in command]
    if basis.tree:
        encoded.append(b"--compare-dest=" + basis.tree)
    return [*encoded, b"--", os.fsencode(url.module[0]), b"./"]


def trusts_sender(version: tuple[int, int, int]) -> bool:
    """Return True if an rsync of `version` can be told not to compare names."""
    return version >= _TRUSTS_FROM


def has_shell(extra: Sequence[str]) -> bool:
    """Return True if rsync uses a daemon through a remote shell, without --contimeout."""
    return any(re.match(r"--rsh(=|$)|-[^-]*e", each) for each in extra)


class Names(NamedTuple):
    """The paths that one run of rsync requests."""

    text: bytes
    """The input of --files-from, relative to the source of `arguments`."""
    directories: int
    """The number of directories that are requested as a whole."""


def names(files: Sequence[File], url: ContentUrl, snapshot: Snapshot | None = None) -> Names:
    """Return the names of `files`, and of directories if all their files are among them.

    `snapshot` lists the files of a directory; without it each file is named.  The sender reads a
    directory in less than half the CPU time that it needs for the names in it.

    The `./` keeps a name from being anything but a name, and separates it from the part that rsync
    leaves out of the paths here.
    """
    _, below = url.module
    commit = None if snapshot is None else snapshot.arguments
    return Names(*_native.request_names(files, below + b"./", commit))


def most(sizes: Iterable[int]) -> tuple[int, int]:
    """Return the limits in bytes on one file and on all together: the announced sizes, and more.

    The surplus, an eighth or 1 MiB if that is more, is for a file that changed since: it is fetched
    to be rejected for its content.
    """
    sizes = [*sizes]
    largest, total = max(sizes, default=0), sum(sizes)
    return largest + _surplus(largest), total + _surplus(total)


def _surplus(size: int) -> int:
    return max(_SLACK, size // 8)
