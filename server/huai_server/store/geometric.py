"""Which packs become one, so that few are left, and each object is seldom written again.

Pure.  The rule is that of `git repack --geometric=2`: each pack has at least twice as many objects
as the next smaller one.  So there are at most as many packs as the number of objects has bits, and
an object is written that often at most.
"""

from collections.abc import Sequence

_FACTOR = 2


def roll_up(counts: Sequence[int]) -> int:
    """How many of the smallest become one; `counts` are the objects of all packs, ascending.

    0, or 2 and more.
    """
    split = len(counts) - 1
    while split > 0 and counts[split] >= _FACTOR * counts[split - 1]:
        split -= 1
    if split <= 0:
        return 0
    # What is less than twice as large as all below it together joins them.
    total = sum(counts[:split])
    while split < len(counts) and counts[split] < _FACTOR * total:
        total += counts[split]
        split += 1
    return split
