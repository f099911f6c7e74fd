"""The lines of `--json`, as docs/JSON.md describes them: its lists are the schema.

`faults` compares an event with them: no field that is not described, none missing, each of a
described type.  A field of an object is written `outer.inner`, one of the objects in an array
`outer[].inner`.  Types: as the page says, several with ` or `, and `, or missing` at the end.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "JSON.md"
PROGRAMS = ("huai-client", "huai-server")
MISSING = ", or missing"
_FIELD = re.compile(r"- (`[^`]+`(?:, `[^`]+`)*) ([^:]+)(?:: .*)?")
_FIELDS_OF = re.compile(r"- the fields of `([a-z-]+)`")
_PLAIN: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "path": lambda value: isinstance(value, str) and value != "",
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


@dataclass
class Shape:
    """The schema of one value."""

    types: list[str]
    optional: bool = False
    inner: dict[str, "Shape"] = field(default_factory=dict)
    """The fields of an object, or of the objects in an array."""


def sections(title: str) -> dict[str, str]:
    """Return the text below each heading of a section, by the names in the heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)[1:]
    return {
        name: body
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"`([a-z_-]+)`", heading)
    }


@cache
def events(program: str) -> dict[str, Shape]:
    """The events of a program, by `type`."""
    shapes = {}
    for name, body in sections(f"Events of `{program}`").items():
        shapes[name] = _object(body)
        if "ithout `module`" not in body:
            shapes[name].inner = {"module": Shape(["string"])} | shapes[name].inner
    return shapes


@cache
def shared() -> dict[str, Shape]:
    """Objects that several events hold."""
    return {name: _object(body) for name, body in sections("Shared objects").items()}


def _object(text: str) -> Shape:
    top = Shape(["object"])
    for line in re.findall(r"^- .*$", text, re.MULTILINE):
        if inherited := _FIELDS_OF.fullmatch(line):
            top.inner |= shared()[inherited[1]].inner
            continue
        row = _FIELD.fullmatch(line)
        assert row, line
        for name in re.findall(r"`([^`]+)`", row[1]):
            _add_field(top, name.replace("[]", "").split("."), row[2])
    return top


def _add_field(outer: Shape, path: list[str], types: str) -> None:
    for name in path[:-1]:
        outer = outer.inner[name]
    kinds = types.removesuffix(MISSING).split(" or ")
    assert path[-1] not in outer.inner, f"{path} is described twice"
    outer.inner[path[-1]] = Shape(kinds, optional=types.endswith(MISSING))


def faults(program: str, event: dict[str, Any]) -> Iterator[str]:
    """Yield the deviations of an event from its description, one sentence each."""
    shapes = events(program)
    if event.get("v") != 1 or event.get("type") not in shapes:
        yield f"{event.get('type')} is not described, or not of version 1"
        return
    rest = {name: value for name, value in event.items() if name not in {"v", "type"}}
    yield from _faults(shapes[event["type"]], rest, str(event["type"]))


def described(program: str) -> set[str]:
    """Every field of every event, as `event.outer.inner`."""
    return {name for kind, shape in events(program).items() for name in _names(shape, kind)}


def occurring(event: dict[str, Any]) -> set[str]:
    """Return the fields of one event, in the same form."""
    return {f"{event['type']}.{name}" for name in _inside(event)} - {
        f"{event['type']}.{name}" for name in ("v", "type")
    }


def _names(shape: Shape, place: str) -> Iterator[str]:
    for name, inner in shape.inner.items():
        yield f"{place}.{name}"
        yield from _names(inner, f"{place}.{name}")


def _inside(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _inside(item)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from (f"{name}.{below}" for below in _inside(inner))


def _faults(shape: Shape, value: dict[str, Any], place: str) -> Iterator[str]:
    """Yield the faults of an object."""
    for name in value.keys() - shape.inner.keys():
        yield f"{place}.{name} is not described"
    for name, inner in shape.inner.items():
        if name in value:
            yield from _wrong(inner, value[name], f"{place}.{name}")
        elif not inner.optional:
            yield f"{place}.{name} is missing"


def _wrong(shape: Shape, value: object, place: str) -> Iterator[str]:
    """Yield the faults of a value that may be of any of the types."""
    faults_by_type = [list(_against(kind, shape, value, place)) for kind in shape.types]
    if all(faults_by_type):
        inner = [faults for faults in faults_by_type if not faults[0].endswith("another type")]
        yield from (inner or faults_by_type)[0]


def _against(kind: str, shape: Shape, value: object, place: str) -> Iterator[str]:
    another = f"{place} is of another type"
    if kind.startswith('"'):
        right = value == kind.strip('"')
    elif kind.startswith("array of "):
        right = isinstance(value, list)
        for item in value if isinstance(value, list) else ():
            yield from _against(kind.removeprefix("array of "), shape, item, f"{place}[]")
    elif kind.startswith("map of "):
        right = isinstance(value, dict)
        for item in value.values() if isinstance(value, dict) else ():
            yield from _against(kind.removeprefix("map of "), shape, item, f"{place}[]")
    elif kind == "object" or kind in shared():
        right = isinstance(value, dict)
        if isinstance(value, dict):
            yield from _faults(shape if kind == "object" else shared()[kind], value, place)
    else:
        right = _PLAIN[kind](value)
    if not right:
        yield another
