"""The path that somebody asks about, as it was typed.

Pure.
"""

import os

from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import RelPath, rel_path


class PathArgumentError(HuaiError):
    """What was typed names no path of a module."""

    exit_code = ExitCode.USAGE


def parse_path_argument(text: str, dest: str) -> RelPath:
    """A path inside the module: as it stands there, or below DEST as the shell completes it.

    One with a slash in front counts from the top of the module, as in patterns.
    """
    raw, top = os.fsencode(text), os.fsencode(dest).rstrip(b"/")
    if raw == top or raw.startswith(top + b"/"):
        raw = raw[len(top) :]
    names = [name for name in raw.split(b"/") if name not in (b"", b".")]
    try:
        return rel_path(b"/".join(names))
    except FormatError as error:
        raise PathArgumentError(
            f"{text}: {error.reason}", hint="give a path as the module names it"
        ) from None
