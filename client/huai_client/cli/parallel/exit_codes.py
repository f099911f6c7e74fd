"""Many exit codes, and the one that speaks for all of them.

Pure.  The rule: what comes right by itself at the next run counts least, all else counts more,
and among equals the one that is named first wins.
"""

from collections.abc import Iterable

from huai_schema.errors import ExitCode

_MILD = (
    ExitCode.OK,
    ExitCode.VANISHED,
    ExitCode.LOCKED,
    ExitCode.TIMEOUT,
    ExitCode.NETWORK,
    ExitCode.PARTIAL,
)
"""From nothing to the worst of those that the next run may repair without anybody's help."""


def worst_exit_code(codes: Iterable[int]) -> int:
    """The code to end with; 0 if there is none."""
    return max(codes, key=_weight, default=int(ExitCode.OK))


def _weight(code: int) -> int:
    return _MILD.index(code) if code in _MILD else len(_MILD)
