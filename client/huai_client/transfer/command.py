"""rsync's arguments for one batch.

Pure.  Every option is known to rsync 3.1.3.  What each is for:

    --times --ignore-times   keep times; never skip by rsync's own comparison, which also looks
                             into --compare-dest and takes sub-second changes for none
    --perms --chmod          staged files are ours alone until they are published
    --sparse --partial       holes stay holes; what came before a cut stays
    --from0 --files-from=-   the names, by a handle: no list file that somebody could exchange
    --no-implied-dirs        parents are made here, not copied: no foreign modes or symlinks
    --compare-dest           the present file is the basis; absolute, since several security
                             fixes to rsync refuse a relative one with `..`
"""

import os
from collections.abc import Sequence

from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl, Transport
from huai_schema.entries import File

_FIXED = (
    "--times",
    "--ignore-times",
    "--perms",
    "--chmod=D700,F600",
    "--sparse",
    "--partial",
    "--from0",
    "--files-from=-",
    "--no-implied-dirs",
    "--no-motd",
    "--no-human-readable",
    "--info=progress2,stats2",
)


def arguments(
    options: TransferOptions, url: ContentUrl, compare_dest: bytes, bwlimit: int
) -> list[bytes]:
    """The whole command line; `bwlimit` (KiB/s, 0: none) is this run's share."""
    command = [options.program, *options.extra, *_FIXED, f"--timeout={options.timeout}"]
    behind_shell = any(option.startswith(("--rsh", "-e")) for option in options.extra)
    if url.transport is Transport.DAEMON and not behind_shell:  # rsync refuses it there
        command.append(f"--contimeout={options.contimeout}")
    if bwlimit:
        command.append(f"--bwlimit={bwlimit}")
    encoded = [os.fsencode(argument) for argument in command]
    return [*encoded, b"--compare-dest=" + compare_dest, b"--", os.fsencode(url.source), b"./"]


def names(files: Sequence[File]) -> bytes:
    """What --files-from reads.  The `./` keeps a name from being anything but a name."""
    return b"".join(b"./%b\0" % file.path for file in files)
