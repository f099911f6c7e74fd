"""The fields of `--json`: an interface. Within a version lines may come, and none may go."""

from collections.abc import Iterator

import pytest

from tests.conftest import Golden
from tests.support.json_events import PROGRAMS, Shape, events, shared


def fields(shape: Shape, place: str) -> Iterator[str]:
    """A line for each field, with its types."""
    for name, inner in shape.inner.items():
        optional = ", or missing" if inner.optional else ""
        yield f"{place}.{name}: {' or '.join(inner.types)}{optional}"
        yield from fields(inner, f"{place}.{name}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_fields(program: str, golden: Golden) -> None:
    known = {**shared(), **events(program)}
    text = "".join(f"{line}\n" for kind in sorted(known) for line in fields(known[kind], kind))
    golden.check(f"json/{program}.v1.txt", text)
