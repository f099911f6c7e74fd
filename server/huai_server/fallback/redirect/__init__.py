"""The preload library, by which a stock rsync daemon sends content in place of holes.

It is written in C, below `c/`, and built with the package; only `rsync` loads it.
"""

from importlib.util import find_spec
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class NotBuiltError(HuaiError):
    """The library is not there."""

    exit_code = ExitCode.REQUIREMENT


def preload_library() -> Path:
    """The path of the library; raises `NotBuiltError`."""
    spec = find_spec("huai_server.fallback.redirect._redirect")
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise NotBuiltError(
            "the preload library of the fallback is not built",
            hint="install a C compiler (gcc, libc6-dev), then install huai anew",
        )
    return Path(spec.origin)
