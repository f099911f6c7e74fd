r"""What a scan leaves out.

A pattern is a glob of fnmatch(3) (`*`, `?`, `[...]`, `\` escapes), matched byte by byte whatever
the locale.  Without a slash it matches the last component of a path; with one in front or
inside it matches the whole path from the root, and `*` and `?` do not match a slash.  A slash at
its end restricts it to directories.  A directory is left out with all below it.

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

Here a pattern is parsed; the rules are carried out by `native/tree/src/exclude.rs`.
"""

from typing import NamedTuple

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


class ExcludePattern(NamedTuple):
    """A parsed pattern."""

    glob: bytes
    anchored: bool
    """Match the whole path, not the last component."""
    directories: bool
    """Match directories only."""


def parse_exclude(text: bytes) -> ExcludePattern:
    """The pattern that `text` spells."""
    glob = text.removesuffix(b"/")
    anchored = b"/" in glob
    directories = glob != text
    glob = glob.removeprefix(b"/")
    if not glob or b"\0" in glob:
        raise BadPatternError(
            f"not a pattern that can match: {show(text)!r}",
            hint="give a glob such as *.tmp, lost+found/ or /incoming",
        )
    return ExcludePattern(glob, anchored, directories)
