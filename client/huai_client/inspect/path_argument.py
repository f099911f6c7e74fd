"""The path argument of a command.  Pure."""

import os

from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import RelPath, rel_path


class PathArgumentError(HuaiError):
    """The argument is not a path of a module."""

    exit_code = ExitCode.USAGE


def parse_path_argument(text: str, dest: str) -> RelPath:
    """Parse a path of the module: relative to its top, or below DEST as the shell completes it.

    A path with a leading slash begins at the top of the module, as in patterns.
    """
    raw, top = os.fsencode(text), os.fsencode(dest).rstrip(b"/")
    if raw == top or raw.startswith(top + b"/"):
        raw = raw[len(top) :]
    names = [name for name in raw.split(b"/") if name not in (b"", b".")]
    try:
        return rel_path(b"/".join(names))
    except FormatError as error:
        raise PathArgumentError(
            f"{text}: {error.reason}", hint="give a path relative to the top of the module"
        ) from None
