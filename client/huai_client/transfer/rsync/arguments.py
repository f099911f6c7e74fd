"""rsync's arguments for one batch.

Pure.  Every option is known to rsync 3.1.3.  What each is for:

    --times --ignore-times   keep times; never skip by rsync's own comparison, which also looks
                             into --compare-dest and takes sub-second changes for none
    --perms --chmod          staged files are ours alone, and rsync, which opens a file once more to
                             give it a mode, need not: verifying does, which has it open
    --sparse --partial       holes stay holes; what came before an interruption stays
    --from0 --files-from=-   the names, by a handle: no list file that somebody could exchange
    --no-implied-dirs        parents are made here, not copied: no foreign modes or symlinks
    --compare-dest           the present file is the basis, if any is there; absolute, since
                             several security fixes to rsync refuse a relative one with `..`
    --inplace                without --sparse, where all files are small and there is no basis: no
                             temporary name and no rename.  What is cut is told by its time
                             Of a daemon that refuses the one or the other, it is not asked again
    --max-size --info=skip   what has grown since the metadata were made is no use, and is told
    --trust-sender           where rsync knows it: else it compares each name that comes with each
                             that was asked for, as patterns, and refuses some names outright.  What
                             a sender adds ends in our own staging folder, and is thrown away
"""

import os
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from huai_client.diff.files import paths
from huai_client.transfer.options import TransferOptions, without_secrets
from huai_client.transfer.urls import ContentUrl, Transport
from huai_schema.entries import File

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
"""What can be left out where a daemon refuses it: both only save work."""
_TRUSTS_FROM = (3, 2, 5)
_SMALL = _SLACK + (256 << 10)
"""Of files with less than 256 KiB `most` gives no more.  For them a temporary name costs a tenth of
all, and holes save next to nothing."""


class Basis(NamedTuple):
    """What rsync may make files of, beside what it is sent."""

    tree: bytes = b""
    """An absolute path; empty: none of the files is there."""
    partials: bool = False
    """Whether any file begins in the folder that rsync writes to."""


class Sides(NamedTuple):
    """What the two sides of a transfer know and allow."""

    version: tuple[int, int, int] = (0, 0, 0)
    """Of our rsync."""
    refused: AbstractSet[str] = frozenset()
    """Those of `OPTIONAL` that the daemon refuses."""


_UNKNOWN = Sides()


def arguments(
    options: TransferOptions,
    url: ContentUrl,
    basis: Basis,
    bwlimit: int,
    largest: int,
    sides: Sides = _UNKNOWN,
) -> list[bytes]:
    """The whole command line; `bwlimit` (KiB/s, 0: none) is this run's share.

    `largest` is in bytes, of one file, as by `most`.
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
    """Whether an rsync of `version` can be told not to compare names."""
    return version >= _TRUSTS_FROM


def has_shell(extra: Sequence[str]) -> bool:
    """Whether rsync goes to a daemon through a remote shell, and then takes no --contimeout."""
    return any(re.match(r"--rsh(=|$)|-[^-]*e", each) for each in extra)


def names(files: Sequence[File], url: ContentUrl) -> bytearray:
    """What --files-from reads, seen from the source of `arguments`.

    The `./` keeps a name from being anything but a name, and parts it from what rsync leaves out
    of the paths here.
    """
    _, below = url.module
    found = bytearray()
    for path in paths(files):
        found += b"%b./%b\0" % (below, path)
    return found


def most(sizes: Iterable[int]) -> tuple[int, int]:
    """How large one file may grow, and how much may come in all: as announced, and a little.

    The little is for a file that changed since: it is fetched to be refused for what it holds.
    """
    largest = total = 0
    for size in sizes:
        largest = max(largest, size)
        total += size
    return largest + _more(largest), total + _more(total)


def _more(size: int) -> int:
    return max(_SLACK, size // 8)
