"""When the next commit of a module is due, as far as the last ones tell.

Pure.
"""

from collections.abc import Sequence
from itertools import pairwise

_FEWEST_GAPS = 3


def next_expected(times: Sequence[int]) -> int | None:
    """As long after the newest as commits usually are apart (the median), seconds since the epoch.

    `times`, the newest first; None: fewer than four commits say nothing.
    """
    gaps = sorted(later - earlier for later, earlier in pairwise(times) if later > earlier)
    return times[0] + gaps[len(gaps) // 2] if len(gaps) >= _FEWEST_GAPS else None
