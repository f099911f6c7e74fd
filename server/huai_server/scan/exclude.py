"""What a scan leaves out.

Patterns are those of rsync's --exclude, carried out by `native/format/src/pattern.rs`.  A directory
is left out with all below it.

Always left out, with a remark:

- whatever is named `.~tmp~`, in upper or lower case: rsync (--delay-updates) and huai stage
  there, so a downstream could not publish it;
- rsync's temporary files.  For a file NAME rsync writes `.NAME.XXXXXX` (mkstemp(3)) with the mode
  of NAME but no rights for group and others; when it is complete, rsync sets the mode, then renames
  it.  So a name like this is a temporary file if group and others have no rights, whether rsync is
  writing it or was killed; with any other mode it is a file like `.checksums.sha256`.  A scan
  between the two steps takes the file for a complete one of that name, but then the renaming
  changes the directory, and the scan reads it again.

A commit leaves out as well, without a remark, the files at the top by which ftpsync knows that it
runs (`LOCK_FILES`): they are there while its hooks run, and gone when downstreams ask for them; and
huai's own attestation there, which is of this copy of the tree alone.

What is always left out is carried out by `native/tree/src/walk/exclude.rs`.
"""

from huai_schema.codec.attestation import FILE_NAME
from huai_schema.errors import ExitCode
from huai_schema.paths import show
from huai_server.scan.types import ScanError

LOCK_FILES = (b"/Archive-Update-in-Progress-*", b"/Archive-Update-Required-*")
"""Of ftpsync, each with the name of its mirror at the end."""
LEFT_OUT = (*LOCK_FILES, b"/" + FILE_NAME.encode())
"""What no commit has, whatever the configuration says."""


class BadPatternError(ScanError):
    """A configured pattern that cannot match anything."""

    exit_code = ExitCode.CONFIG


def check_exclude(text: bytes) -> bytes:
    """Return a pattern, or raise `BadPatternError` for one that matches nothing."""
    if not text.strip(b"/") or b"\0" in text:
        raise BadPatternError(
            f"not a pattern that can match: {show(text)!r}",
            hint="give a pattern of rsync's --exclude, such as *.tmp, lost+found/ or /incoming",
        )
    return text
