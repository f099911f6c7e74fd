"""A figure: ours, the peer's, the ratio and the goal; as a Markdown table and as JSON lines.

Goals are shown, never asserted: a machine that is busy makes no figure wrong.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class Goal(NamedTuple):
    """At most `limit`, for the ratio to the peer or for the value itself."""

    limit: float
    text: str
    ratio: bool = False


class Figure(NamedTuple):
    """One row of the table."""

    title: str
    ours: float
    unit: str
    """`s`, `B`, or what is counted."""
    peer: str = ""
    theirs: float | None = None
    goal: Goal | None = None
    note: str = ""
    rounds: int = 0
    """The alternated rounds whose median it is; 0: as many as all others of the run."""

    @property
    def ratio(self) -> float | None:
        """Ours in units of the peer's: 0.1 is ten times less."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def verdict(self) -> str:
        """The goal, and whether it was reached in this run."""
        if self.goal is None:
            return ""
        value = self.ratio if self.goal.ratio else self.ours
        met = value is not None and value <= self.goal.limit
        return f"{self.goal.text} {'✓' if met else '✗'}"


def markdown(figures: Iterable[Figure], rounds: int) -> str:
    """Return a table, and the notes below it."""
    rows = [("what", "huai", "peer", "", "ratio", "rounds", "goal")]
    notes = []
    for figure in figures:
        mark = ""
        if figure.note:
            notes.append(figure.note)
            mark = f" [{len(notes)}]"
        ratio = figure.ratio
        rows.append(
            (
                figure.title + mark,
                show(figure.ours, figure.unit),
                "" if figure.theirs is None else show(figure.theirs, figure.unit),
                figure.peer,
                "" if ratio is None else f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}",
                str(figure.rounds or rounds),
                figure.verdict,
            )
        )
    lines = _aligned(rows)
    lines += ["", *(f"[{number}] {note}" for number, note in enumerate(notes, 1))] if notes else []
    return "\n".join(lines)


def show(value: float, unit: str) -> str:
    """Three digits or so."""
    if unit == "s":
        return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"
    if unit == "B":
        for size, name in _UNITS:
            if value >= size:
                return f"{value / size:.1f} {name}"
    number = f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
    return f"{number} {unit}".rstrip()


def append_json(
    path: Path, name: str, figures: Iterable[Figure], rounds: int, **circumstances: object
) -> None:
    """One line for each figure, behind those of earlier runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    load = round(os.getloadavg()[0], 2)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with path.open("a") as file:
        for figure in figures:
            values = {
                "time": now,
                "load": load,
                **circumstances,
                "figure": name,
                **figure._asdict(),
                "rounds": figure.rounds or rounds,
                "ratio": figure.ratio,
                "goal": figure.goal.text if figure.goal else None,
            }
            file.write(json.dumps(values) + "\n")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"| {' | '.join(cells)} |")
        if number == 0:
            lines.append(f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return lines
