"""Draws the picture of the README: the programs, and the data between them.

`python -m docs.picture` writes `docs/how-it-works.svg`.  Rule to keep: the picture has its own
background, so that it is readable on light and dark pages.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

PICTURE = Path(__file__).with_name("how-it-works.svg")
TITLE = "A downstream asks the upstream what is new, and fetches only that"

_WIDTH, _HEIGHT = 900, 418
_INK, _GROUND, _PANEL = "#1f2933", "#ffffff", "#f1f4f8"
_HUAI, _OWN, _WIRE = "#cfe3fb", "#ffffff", "#0b5cad"
_BOX_WIDTH, _BOX_HEIGHT = 164, 54


class Box(NamedTuple):
    """A program or a place: its middle, its two lines, and True if it is huai's."""

    x: int
    y: int
    name: str
    does: str
    huai: bool = False


class Arrow(NamedTuple):
    """An arrow from one point to another, with a label."""

    x1: int
    y1: int
    x2: int
    y2: int
    label: str = ""
    wire: bool = False
    """True if it crosses the network."""


_LEFT, _MIDDLE, _RIGHT = 108, 294, 792
_ROWS = (94, 182, 270, 358)

BOXES = (
    Box(_LEFT, _ROWS[0], "git repository", "metadata", huai=True),
    Box(_MIDDLE, _ROWS[0], "huai-server serve", "HTTP", huai=True),
    Box(_LEFT, _ROWS[1], "huai-server commit", "after each update", huai=True),
    Box(_LEFT, _ROWS[2], "the tree", "/srv/mirror/tools"),
    Box(_MIDDLE, _ROWS[2], "rsyncd", "not changed"),
    Box(_LEFT, _ROWS[3], "your update", "rsync, tunasync, …"),
    Box(_RIGHT, _ROWS[0], "huai-client sync", "compare, plan", huai=True),
    Box(_RIGHT, _ROWS[2], "staging", "verify each file", huai=True),
    Box(_RIGHT, _ROWS[3], "the copy", "/srv/copy/tools"),
)
_HALF_WIDTH, _HALF_HEIGHT = _BOX_WIDTH // 2, _BOX_HEIGHT // 2
_FROM, _TO = _MIDDLE + _HALF_WIDTH, _RIGHT - _HALF_WIDTH

ARROWS = (
    Arrow(
        _TO, _ROWS[0] - 14, _FROM, _ROWS[0] - 14, "1  anything new? one small request", wire=True
    ),
    Arrow(_FROM, _ROWS[0] + 14, _TO, _ROWS[0] + 14, "2  the metadata of what changed", wire=True),
    Arrow(
        _TO,
        _ROWS[2] - 14,
        _FROM,
        _ROWS[2] - 14,
        "3  rsync: the files that differ, by name",
        wire=True,
    ),
    Arrow(_FROM, _ROWS[2] + 14, _TO, _ROWS[2] + 14, "4  their content", wire=True),
    Arrow(_LEFT + _HALF_WIDTH, _ROWS[0], _MIDDLE - _HALF_WIDTH, _ROWS[0]),
    Arrow(_LEFT, _ROWS[1] - _HALF_HEIGHT, _LEFT, _ROWS[0] + _HALF_HEIGHT),
    Arrow(_LEFT, _ROWS[2] - _HALF_HEIGHT, _LEFT, _ROWS[1] + _HALF_HEIGHT, "names, sizes, digests"),
    Arrow(_LEFT + _HALF_WIDTH, _ROWS[2], _MIDDLE - _HALF_WIDTH, _ROWS[2]),
    Arrow(_LEFT, _ROWS[3] - _HALF_HEIGHT, _LEFT, _ROWS[2] + _HALF_HEIGHT),
    Arrow(_RIGHT, _ROWS[0] + _HALF_HEIGHT, _RIGHT, _ROWS[2] - _HALF_HEIGHT),
    Arrow(_RIGHT, _ROWS[2] + _HALF_HEIGHT, _RIGHT, _ROWS[3] - _HALF_HEIGHT, "rename"),
)


_HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
    f' width="{_WIDTH}" height="{_HEIGHT}" font-family="Helvetica, Arial, sans-serif"'
    ' font-size="13.5">'
)


def svg() -> str:
    """Return the whole picture."""
    lines = [
        _HEAD,
        f"<title>{escape(TITLE)}</title>",
        *_markers(),
        _rectangle(0, 0, _WIDTH, _HEIGHT, _GROUND),
        _rectangle(14, 14, 374, 390, _PANEL),
        _rectangle(698, 14, 188, 390, _PANEL),
        _text(201, 40, "UPSTREAM", weight="bold"),
        _text(_RIGHT, 40, "EACH DOWNSTREAM", weight="bold"),
        *map(_arrow, ARROWS),
        *(line for box in BOXES for line in _box(box)),
        _rectangle(420, 336, 18, 14, _HUAI, _INK),
        _text(446, 348, "huai", anchor="start"),
        _rectangle(420, 362, 18, 14, _OWN, _INK),
        _text(446, 374, "yours", anchor="start"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _markers() -> Iterator[str]:
    for name, colour in (("ink", _INK), ("wire", _WIRE)):
        yield (
            f'<marker id="{name}" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="8"'
            f' markerHeight="8" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
        )


def _rectangle(x: int, y: int, width: int, height: int, fill: str, line: str = "none") -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6"'
        f' fill="{fill}" stroke="{line}"/>'
    )


def _text(
    x: int, y: int, text: str, *, anchor: str = "middle", weight: str = "normal", fill: str = _INK
) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="{fill}">{escape(text)}</text>'
    )


def _box(box: Box) -> Iterator[str]:
    left, top = box.x - _HALF_WIDTH, box.y - _HALF_HEIGHT
    yield _rectangle(left, top, _BOX_WIDTH, _BOX_HEIGHT, _HUAI if box.huai else _OWN, _INK)
    yield _text(box.x, box.y - 4, box.name, weight="bold")
    yield _text(box.x, box.y + 16, box.does)


def _arrow(arrow: Arrow) -> str:
    x1, y1, x2, y2, label, wire = arrow
    colour, name = (_WIRE, "wire") if wire else (_INK, "ink")
    line = (
        f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{colour}" stroke-width="{2 if wire else 1.5}"'
        f' marker-end="url(#{name})"/>'
    )
    if not label:
        return line
    if wire:
        return line + _text((x1 + x2) // 2, y1 - 7, label, fill=colour)
    return line + _text(x1 + 8, (y1 + y2) // 2 + 5, label, anchor="start")


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
