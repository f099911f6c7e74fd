"""Paths that a scan leaves out.

Patterns are those of rsync's --exclude, matched by `native/plan/src/pattern.rs`.  A directory is
left out with all below it.

Always left out, with a remark:

- the name `.~tmp~`, in upper or lower case: rsync (--delay-updates) and huai stage there, so a
  downstream could not publish it;
- rsync's temporary files.  For a file NAME rsync writes `.NAME.XXXXXX` (mkstemp(3)) with the mode
  of NAME but no rights for group and others; when it is complete, rsync sets the mode, then renames
  it.  So a name like this is a temporary file if group and others have no rights, whether rsync is
  writing it or was killed; with any other mode it is a file like `.checksums.sha256`.  A scan
  between the two steps takes the file for a complete one of that name, but then the renaming
  changes the directory, and the scan reads it again.

A commit also leaves out some files at the top without a remark: ftpsync's lock files
(`LOCK_FILES`), which exist while its hooks run and are gone when downstreams fetch, and huai's own
attestation, which belongs to this copy of the tree only.

`native/tree/src/walk/exclude.rs` implements the names that are always left out.
"""

from huai_schema.codec.attestation import FILE_NAME
from huai_schema.errors import ExitCode
from huai_schema.paths import show
from huai_server.scan.types import ScanError

LOCK_FILES = (b"/Archive-Update-in-Progress-*", b"/Archive-Update-Required-*")
"""The lock files of ftpsync, each with the name of its mirror at the end."""
LEFT_OUT = (*LOCK_FILES, b"/" + FILE_NAME.encode())
"""Paths that no commit contains, regardless of the configuration."""


class BadPatternError(ScanError):
    """A configured pattern that cannot match anything."""

    exit_code = ExitCode.CONFIG


def check_exclude(text: bytes) -> bytes:
    """Return the pattern `text`; raises `BadPatternError` if it can match nothing."""
    if not text.strip(b"/") or b"\0" in text:
        raise BadPatternError(
            f"the pattern {show(text)!r} cannot match anything",
            hint="give a pattern of rsync's --exclude, such as *.tmp, lost+found/ or /incoming",
        )
    return text
