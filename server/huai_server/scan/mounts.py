"""Mount points: mounting or unmounting a file system must not look like deleted files.

A file lists the mount points of the last commit, which the metadata do not record; without it a
missing mount is not noticed.  The engine decides which old entries stay
(`native/tree/src/commit/mounts.rs`).
"""

from pathlib import Path

from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_schema.codec.escaping import escape, unescape
from huai_schema.errors import FormatError

NOT_ENTERED = "another file system is mounted there, which is not entered"
MOUNTED_OVER = "another file system is mounted there, and it has none of the old entries"
NOT_MOUNTED = "the file system that was mounted there is missing, and so are its entries"


def write_mounts(record: Path, mounts: set[bytes]) -> None:
    """Replace the file `record` by the mount points of a commit, if they changed."""
    if mounts == read_mounts(record):
        return
    lines = (escape(path) + b"\n" for path in sorted(mounts))
    replace_file(record, b"".join(lines), record.with_name(TEMPORARY + record.name))


def read_mounts(record: Path) -> set[bytes]:
    """Return the mount points of the last commit; none if the file is missing or malformed."""
    try:
        return {unescape(line) for line in record.read_bytes().splitlines()}
    except (FileNotFoundError, FormatError):
        return set()
