"""Plots of several values over a row of ticks, as SVG with a ground of its own for dark pages.

The ticks are at equal distances, the values on a logarithmic scale.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import NamedTuple

_COLOURS = ("#0b5cad", "#2e9e5b", "#7a4fb5", "#c2410c", "#5f6b7a")
_INK, _GRID = "#1f2933", "#d9dfe6"
_WIDTH, _HEIGHT = 400, 220
"""The size of a panel, labels included."""
_LEFT, _TOP, _RIGHT, _BOTTOM = 54, 28, 14, 36
_LEGEND = 22


class Panel(NamedTuple):
    """One of the plots that are drawn side by side."""

    title: str
    lines: Mapping[str, Sequence[float]]
    """The values at each tick, by the name of the line; all panels have the same names."""


def write_plot(
    path: Path, title: str, axis: str, ticks: Sequence[str], panels: Sequence[Panel]
) -> None:
    """Write the panels, with one legend, to an SVG file."""
    names = list(panels[0].lines)
    width = _WIDTH * len(panels)
    legend_rows = ceil(len(names) / 3)
    height = _HEIGHT + legend_rows * _LEGEND + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
        f'width="{width}" height="{height}" font-family="Helvetica, Arial, sans-serif"',
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0" y="0" width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * _WIDTH} 0)">']
        parts += [*_draw_panel(panel, axis, ticks), "</g>"]
    for number, name in enumerate(names):
        x, y = 20 + number % 3 * (width - 20) / 3, _HEIGHT + number // 3 * _LEGEND + 12
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<path d="M{x:.0f} {y}h22" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(_text(x + 28, y + 4, name, "start"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _draw_panel(panel: Panel, axis: str, ticks: Sequence[str]) -> Iterator[str]:
    values = [value for line in panel.lines.values() for value in line]
    low, high = floor(log10(max(min(values), 1e-3))), ceil(log10(max(values)))
    high = max(high, low + 1)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def y(value: float) -> float:
        return bottom - (log10(max(value, 1e-3)) - low) / (high - low) * (bottom - _TOP)

    step = (right - _LEFT) / len(ticks)
    middles = [_LEFT + (number + 0.5) * step for number in range(len(ticks))]
    yield _text((_LEFT + right) / 2, 18, panel.title, weight="bold")
    for power in range(low, high + 1):
        at = y(10.0**power)
        yield f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="{_GRID}"/>'
        yield _text(_LEFT - 6, at + 4, f"{10.0**power:g} s", "end")
    for x, tick in zip(middles, ticks, strict=True):
        yield _text(x, bottom + 16, tick)
    yield _text((_LEFT + right) / 2, bottom + 31, axis)
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(x, y(value), value) for x, value in zip(middles, line, strict=True)]
        drawn = " ".join(f"{x:.1f},{at:.1f}" for x, at, _ in points)
        yield f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        for (x, at, value), tick in zip(points, ticks, strict=True):
            dot = f'<circle cx="{x:.1f}" cy="{at:.1f}" r="3.5" fill="{colour}">'
            yield f"{dot}<title>{escape(name)}, {tick}: {value:.3g} s</title></circle>"


def _text(x: float, y: float, text: str, anchor: str = "middle", weight: str = "normal") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text {place} fill="{_INK}">{escape(text)}</text>'
