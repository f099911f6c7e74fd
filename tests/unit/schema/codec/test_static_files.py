"""Heads and lists of the static transport: decoding, refusals, and paths through steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.static_files import (
    NOTHING,
    STATIC_BYTES,
    ListOf,
    Static,
    StaticFile,
    Step,
    cheapest,
)
from huai_schema.errors import FormatError

SIZES = st.integers(0, 10**18 - 1)
FILES = st.builds(StaticFile, SIZES, st.binary(min_size=32, max_size=32))


def file(size: int) -> StaticFile:
    return StaticFile(size, bytes([size % 251]) * 32)


@st.composite
def heads(draw: st.DrawFn) -> Static:
    serials = sorted(draw(st.sets(st.integers(1, 10**18 - 1), min_size=1, max_size=9)))
    commits = {serial: f"{draw(st.integers(0, 2**160 - 1)):040x}" for serial in serials[::-1]}
    pairs = [(old, new) for old in (NOTHING, *serials) for new in serials if old < new]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=9, unique=True))
    steps = tuple(Step(*pair, draw(FILES)) for pair in chosen)
    lists = draw(st.lists(st.builds(ListOf, SIZES, SIZES, FILES), max_size=4))
    return Static(commits, steps, tuple(lists))


@given(heads())
def test_what_was_written_is_read(head: Static) -> None:
    assert Static.decode(head.encode(), "head") == head
    assert head.newest == max(head.commits)


@given(heads(), st.data())
def test_any_text_is_a_head_or_refused(head: Static, data: st.DataObject) -> None:
    text = bytearray(head.encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    try:
        static = Static.decode(bytes(text), "head")
    except FormatError:
        return
    serials = {serial for step in static.steps for serial in (step.old, step.new)}
    assert serials <= {NOTHING, *static.commits}
    assert list(static.commits) == sorted(static.commits, reverse=True)


COMMIT = "commit\t" + "a" * 40
DIGEST = "b" * 64


def test_what_is_none(subtests: pytest.Subtests) -> None:
    for text in [
        "",
        "huai-static\t1\n",
        "huai-static\t2\ncommit\t" + "a" * 40 + "\t1\n",
        f"huai-static\t1\n{COMMIT}\t1",
        f"huai-static\t1\n{COMMIT}\t0\n",
        f"huai-static\t1\n{COMMIT}\t01\n",
        f"huai-static\t1\n{COMMIT}\t1\n{COMMIT}\t1\n",
        f"huai-static\t1\n{COMMIT}\t1\n{COMMIT}\t2\n",
        f"huai-static\t1\n{COMMIT.upper()}\t1\n",
        f"huai-static\t1\n{COMMIT}\t1\nstep\t0\t2\t5\t{DIGEST}\n",
        f"huai-static\t1\n{COMMIT}\t1\nstep\t1\t1\t5\t{DIGEST}\n",
        f"huai-static\t1\n{COMMIT}\t1\nstep\t0\t1\t-5\t{DIGEST}\n",
        f"huai-static\t1\n{COMMIT}\t1\nstep\t0\t1\t5\t{DIGEST[1:]}\n",
        f"huai-static\t1\n{COMMIT}\t1\nlist\t0\t1\t5\n",
        f"huai-static\t1\n{COMMIT}\t1\nUPPER\t0\n",
        f"huai-static\t1\n{COMMIT}\t1\n\n",
        f"huai-static\t1\n{COMMIT}\t1\n" + "x\n" * STATIC_BYTES,
    ]:
        with subtests.test(text=text):
            with pytest.raises(FormatError):
                Static.decode(text.encode(), "head")


def test_other_keys_are_passed_over() -> None:
    text = f"huai-static\t1\nx-later\tthing\n{COMMIT}\t1\ncommitted\n"
    assert Static.decode(text.encode(), "head").commits == {1: "a" * 40}


def test_a_head_that_is_too_long_is_not_written() -> None:
    steps = tuple(Step(NOTHING, 1, file(size)) for size in range(4000))
    with pytest.raises(ValueError, match="too many"):
        Static({1: "a" * 40}, steps).encode()


def test_the_cheapest_way() -> None:
    steps = [
        Step(NOTHING, 3, file(100)),
        Step(1, 2, file(10)),
        Step(2, 3, file(10)),
        Step(1, 3, file(15)),
        Step(3, 4, file(1)),
    ]
    assert [(step.old, step.new) for step in cheapest(steps, [1], 4) or ()] == [(1, 3), (3, 4)]
    assert [(step.old, step.new) for step in cheapest(steps, [1, 2], 4) or ()] == [(2, 3), (3, 4)]
    assert [step.new for step in cheapest(steps, [NOTHING], 4) or ()] == [3, 4]
    assert [step.new for step in cheapest(steps, [NOTHING, 1], 4) or ()] == [3, 4]
    assert cheapest(steps, [4], 4) == []
    assert cheapest(steps, [7], 4) is None
    assert cheapest(steps, [1], 5) is None


def test_a_request_has_a_price() -> None:
    steps = [Step(1, 2, file(10)), Step(2, 3, file(10)), Step(1, 3, file(25))]
    assert len(cheapest(steps, [1], 3) or ()) == 2
    assert len(cheapest(steps, [1], 3, request=10) or ()) == 1


def test_a_relay_says_where_it_has_the_content() -> None:
    urls = ("rsync://h/m", "https://h/m")
    text = Static({1: "a" * 40}, (), content_urls=urls).encode()
    assert text.endswith(b"content\trsync://h/m\ncontent\thttps://h/m\n")
    assert Static.decode(text, "head").content_urls == urls


@pytest.mark.parametrize("line", ["content", "content\ta\tb", "content\ta b", "content\ta\x00"])
def test_what_is_no_such_url_is_passed_over(line: str) -> None:
    text = f"huai-static\t1\ncommit\t{'a' * 40}\t1\n{line}\n"
    assert Static.decode(text.encode(), "head").content_urls == ()


def test_of_many_such_urls_the_first_count() -> None:
    urls = tuple(f"rsync://h/{number}" for number in range(40))
    text = Static({1: "a" * 40}, (), content_urls=urls).encode()
    assert Static.decode(text, "head").content_urls == urls[:16]
