import pytest

from huai_schema import limits
from huai_schema.errors import FormatError
from huai_schema.layout.manifest import decode_manifest, piece_start

OWN = b"./\t0\n"


def test_a_manifest_comes_apart_into_directories() -> None:
    text = OWN + b"a\t1\t0\nd/\t1\nx\t1\t0\nd/e/\t2\n" + b"f/\t3\ny\t>t\t0\nz\t1\t0\n"
    column = b"A" * 32 + bytes(32) + b"Z" * 32
    found = decode_manifest(text, column, "place")
    assert (found.attributes, found.leaves, found.digests) == (b"0", b"a\t1\t0\n", b"A" * 32)
    assert [each.name for each in found.inline] == [b"d", b"f"]
    assert [block.relative for block in found.inline[0].blocks] == [b"d", b"d/e"]
    assert found.inline[0].blocks[0].digests == b""
    assert found.inline[1].blocks[0].digests == b"Z" * 32


@pytest.mark.parametrize(
    ("text", "start"),
    [(OWN, b""), (b"a\\x09\t1\t0\n", b"a\\x09"), (b"d/\t0\n", b"d/"), (OWN + b"a\t1\t0\n", b"")],
)
def test_a_piece_is_named_after_its_start(text: bytes, start: bytes) -> None:
    decode_manifest(text, b"")
    assert piece_start(text, "") == start


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "begins with no name"),
        (b"\n", "begins with no name"),
        (b"\t1\n", "begins with no name"),
        (b"./\t0", "does not end in a newline"),
        (b"a\t1\t0\n" + OWN, "own line is not the first"),
        (OWN + OWN, "cannot name"),
        (OWN + b"d/\t0\n" + OWN, "cannot name"),
        (OWN + b"/\t0\n", "cannot name"),
        (OWN + b"../\t0\n", "cannot name"),
        (OWN + b"d/\t0\nd/../\t0\n", "cannot name"),
        (OWN + b"d/\t0\nd//\t0\n", "cannot name"),
        (OWN + b"d/e/\t0\n", "without the one above"),
        (OWN + b"d/\t0\nx/e/\t0\n", "without the one above"),
        (OWN + b"d/\t0\nd/e/f/\t0\n", "without the one above"),
        (OWN + b"d/\t0\nd/e/\t0\nd/e/g/\t0\nd/f/g/\t0\n", "without the one above"),
        (OWN + b"d/\t0\nd/\t0\n", "out of order"),
        (OWN + b"e/\t0\nd/\t0\n", "out of order"),
        (OWN + b"d/\t0\nd/f/\t0\nd/e/\t0\n", "out of order"),
        (OWN + b"d/\t0\nd/e/\t0\nd/e/\t0\n", "out of order"),
        (OWN + b"d\\x2f/\t0\n", "stray backslash"),
        (OWN + b"d\r/\t0\n", "canonical spelling"),
        (OWN + b".~tmp~/\t0\n", "reserved"),
        (OWN + b"d/\t0\nd/.~TMP~/\t0\n", "reserved"),
        (OWN + b"d\\x00/\t0\n", "NUL"),
        (OWN + b"d" * 256 + b"/\t0\n", "255"),
        (OWN + b"d/\t0\n" + b"".join(b"%03d\t1\t0\n" % n for n in range(128)), "128 entries"),
        (OWN + b"\n" * limits.MANIFEST_LINES, "16384 lines"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused_with_its_place(text: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        decode_manifest(text, b"", "some/place")
    assert caught.value.place.startswith("some/place")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (b"A" * 32, "one digest for each"),
        (b"A" * 96, "one digest for each"),
        (b"A" * 63, "one digest for each"),
        (bytes(64), "without any digest"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(column: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=f"place: .*{reason}"):
        decode_manifest(OWN + b"a\t1\t0\nb\t1\t0\nc\t>t\t0\n", column, "place")


def test_a_deep_chain_of_names_costs_no_more_than_its_bytes() -> None:
    with pytest.raises(FormatError, match="without the one above"):
        decode_manifest(OWN + (b"d/" * 30_000 + b"\t0\n") * 300, b"", "place")
