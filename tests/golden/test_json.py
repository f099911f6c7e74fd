"""The fields of `--json` are an interface: within a version they may be added, but not removed."""

from collections.abc import Iterator

import pytest

from tests.conftest import Golden
from tests.support.json_events import PROGRAMS, Shape, events, shared


def fields(shape: Shape, place: str) -> Iterator[str]:
    """Yield a line for each field, with its types."""
    for name, inner in shape.inner.items():
        optional = ", or missing" if inner.optional else ""
        yield f"{place}.{name}: {' or '.join(inner.types)}{optional}"
        yield from fields(inner, f"{place}.{name}")


@pytest.mark.parametrize("program", PROGRAMS)
def test_fields(program: str, golden: Golden) -> None:
    events_by_kind = {**shared(), **events(program)}
    text = "".join(
        f"{line}\n"
        for kind in sorted(events_by_kind)
        for line in fields(events_by_kind[kind], kind)
    )
    golden.check(f"json/{program}.v1.txt", text)
