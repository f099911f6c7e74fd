"""The picture of how a module grew: points of a line.

Pure.  The line spans the picture: its left end is the oldest commit, its right end the newest.
"""

from collections.abc import Sequence

WIDTH, HEIGHT = 120, 24
_MARGIN = 2


def line(times: Sequence[int], values: Sequence[int]) -> str:
    """The `points` of an SVG polyline; equal lengths, oldest first; empty for less than two."""
    if len(values) < 2:
        return ""
    first, last = min(times), max(times)
    low, high = min(values), max(values)

    def x(place: int) -> float:
        """By time, or evenly where clocks say nothing."""
        share = (
            (times[place] - first) / (last - first) if last > first else place / (len(values) - 1)
        )
        return _MARGIN + share * (WIDTH - 2 * _MARGIN)

    def y(place: int) -> float:
        share = (values[place] - low) / (high - low) if high > low else 0.5
        return HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN)

    return " ".join(f"{x(place):.1f},{y(place):.1f}" for place in range(len(values)))
