"""Mount points: a file system that came or went must not be taken for deleted files.

A file lists the mount points of the last commit, which the metadata do not say; without that file a
missing mount is not noticed.  What stays where one came or went is the engine's to say
(`native/tree/src/commit/mounts.rs`).
"""

from pathlib import Path

from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_schema.codec.escaping import escape, unescape
from huai_schema.errors import FormatError

NOT_ENTERED = "another file system is mounted there, which is not entered"
MOUNTED_OVER = "another file system is mounted there, and nothing of what was there is in it"
NOT_MOUNTED = "the file system that was mounted there is not, and nothing of what it held is there"


def write_mounts(record: Path, mounts: set[bytes]) -> None:
    """Record the mount points of a commit, for the next one."""
    if mounts == read_mounts(record):
        return
    lines = (escape(path) + b"\n" for path in sorted(mounts))
    replace_file(record, b"".join(lines), record.with_name(TEMPORARY + record.name))


def read_mounts(record: Path) -> set[bytes]:
    """The mount points of the last commit; empty if the file is missing or damaged."""
    try:
        return {unescape(line) for line in record.read_bytes().splitlines()}
    except (FileNotFoundError, FormatError):
        return set()
