"""Whatever a Range header says, no answer is longer than the file."""

from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.content.ranges import MOST_RANGES, spans_of

SIZES = st.integers(0, 60)
NUMBERS = st.integers(0, 80).map(str) | st.just("")
RANGES = st.tuples(NUMBERS, NUMBERS).map("-".join)


@given(st.text() | st.lists(RANGES | st.text("0123456789-, ")).map(",".join), SIZES)
def test_no_byte_is_named_twice(listed: str, size: int) -> None:
    spans = spans_of(f"bytes={listed}", size) or []
    named = [at for span in spans for at in range(*span)]
    assert len(named) == len(set(named)) <= size
    assert all(0 <= at < size for at in named)
    assert len(spans) <= MOST_RANGES


@given(st.lists(RANGES.filter(lambda each: each != "-"), min_size=1), SIZES)
def test_every_byte_that_is_asked_for_is_sent(ranges: list[str], size: int) -> None:
    wanted: set[int] | None = set()
    for each in ranges:
        first, last = each.split("-")
        if first and last and int(last) < int(first):
            wanted = None
            break
        assert wanted is not None
        begin = int(first) if first else max(0, size - int(last))
        end = int(last) + 1 if first and last else size
        wanted |= set(range(begin, min(end, size)))
    spans = spans_of("bytes=" + ",".join(ranges), size)
    assert (spans is None) == (wanted is None)
    if spans is not None:
        assert {at for span in spans for at in range(*span)} == wanted
