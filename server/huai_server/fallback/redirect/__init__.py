"""The preload library, with which a stock rsync daemon sends content instead of holes.

It is written in C, in `c/`, and built with the package; only `rsync` loads it.
"""

from importlib.util import find_spec
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class NotBuiltError(HuaiError):
    """The library was not built."""

    exit_code = ExitCode.REQUIREMENT


def preload_library() -> Path:
    """Return the path of the library; raises `NotBuiltError`."""
    spec = find_spec("huai_server.fallback.redirect._redirect")
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise NotBuiltError(
            "the preload library of the fallback is not built",
            hint="install a C compiler (gcc, libc6-dev), and install huai again",
        )
    return Path(spec.origin)
