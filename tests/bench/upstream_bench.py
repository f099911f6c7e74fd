"""The upstream's day; `--case` names a part of it.

Commits from lists: in a tree of `--entries` (`changes`), in one that is not on the disk, for more
entries than fit there (`synthetic`), and in one directory of a million files (`crowd`).  What a
signature costs; from a write to its commit (`watch`); a simulated year of commits, kept in order.
"""

from collections.abc import Iterator

from tests.bench.figures import Figure
from tests.bench.stand import Stand
from tests.bench.upstream import changes, crowd, signing, synthetic, watch, year

_CASES = {
    "changes": changes.figures,
    "crowd": crowd.figures,
    "synthetic": synthetic.figures,
    "signing": signing.figures,
    "watch": watch.figures,
    "year": year.figures,
}


def figures(stand: Stand) -> Iterator[Figure]:
    """Yield the figures of each requested case."""
    for case in stand.chosen(_CASES):
        yield from _CASES[case](stand)
