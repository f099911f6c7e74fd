"""The preload library that gives a stock rsync daemon content in place of holes.

Written in C, below `c/`; built as a part of the package and loaded by nobody but `rsync`.
"""

from importlib.util import find_spec
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class NotBuiltError(HuaiError):
    """The library is not there."""

    exit_code = ExitCode.REQUIREMENT


def preload_library() -> Path:
    """Where the library stands, or `NotBuiltError`."""
    spec = find_spec("huai_server.fallback.redirect._redirect")
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise NotBuiltError(
            "the preload library of the fallback is not built",
            hint="install a C compiler (gcc, libc6-dev), then install huai anew",
        )
    return Path(spec.origin)
