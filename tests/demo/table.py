"""Formats the demo's figures side by side."""

from typing import NamedTuple

from huai_program.humanize import human
from tests.demo.stage import Cost

_HEAD = (
    *("step", "entries", "changed"),
    *("metadata", "content", "time", "CPU*"),
    *("bytes", "time", "CPU*"),
)
_LEFT = 1
"""The number of columns with text."""
_HUAI, _PLAIN = slice(3, 7), slice(7, 10)


class Row(NamedTuple):
    """The figures of one step of the story, on both downstreams."""

    step: str
    entries: int
    changed: int
    huai: Cost
    plain: Cost


def table(rows: list[Row]) -> str:
    """Format the figures as lines of less than 100 columns."""
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number < _LEFT else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([_groups(widths), *lines, "* seconds of the server's processors"])


def reading(rows: list[Row]) -> str:
    """Explain the figures to a new user."""
    return "\n".join(
        [
            "What to look at: the bytes, and the processor time of the upstream's server. Both",
            "follow what changed with huai, and the size of the mirror with rsync:",
            *(f"    {_saving(row)}" for row in rows[1:]),
            "Time says little here: on one machine no line is waited for, and no disk is read. A",
            "first sync takes longer than rsync's: each file is verified before it is published.",
        ]
    )


def _saving(row: Row) -> str:
    huai, plain = row.huai, row.plain
    total = plain.metadata + plain.content
    return (
        f"{row.step}: {human(huai.metadata + huai.content)} instead of {human(total)}, "
        f"server {huai.cpu:.2f} s instead of {plain.cpu:.2f} s"
    )


def _cells(row: Row) -> tuple[str, ...]:
    huai, plain = row.huai, row.plain
    return (
        row.step,
        f"{row.entries:,}",
        f"{row.changed:,}",
        human(huai.metadata),
        human(huai.content),
        f"{huai.seconds:.2f} s",
        f"{huai.cpu:.2f}",
        human(plain.metadata + plain.content),
        f"{plain.seconds:.2f} s",
        f"{plain.cpu:.2f}",
    )


def _groups(widths: list[int]) -> str:
    """Return the line with the owners of the columns."""
    before = sum(widths[: _HUAI.start]) + 2 * (_HUAI.start - 1)
    huai, plain = (sum(widths[part]) + 2 * (len(widths[part]) - 1) for part in (_HUAI, _PLAIN))
    return (
        " " * before + "  " + " huai-client sync ".center(huai, "-")
        + "  " + " rsync -aH --delete ".center(plain, "-").rstrip()
    )  # fmt: skip
