import pytest

from huai_schema.errors import FormatError
from tests.support.schema.single import read_manifest

OWN = b"./\t0\n"


def test_a_manifest_comes_apart_into_directories() -> None:
    text = OWN + b"a\t1\t0\nd/\t1\nx\t1\t0\nd/e/\t2\n" + b"f/\t3\ny\t>t\t0\nz\t1\t0\n"
    column = b"A" * 32 + bytes(32) + b"Z" * 32
    assert read_manifest(text, column, b"place") == [
        (b"place", b"0", b"a\t1\t0\n", b"A" * 32),
        (b"place/d", b"1", b"x\t1\t0\n", b""),
        (b"place/d/e", b"2", b"", b""),
        (b"place/f", b"3", b"y\t>t\t0\nz\t1\t0\n", b"Z" * 32),
    ]


def test_a_manifest_that_breaks_a_rule_is_refused_with_its_place(subtests: pytest.Subtests) -> None:
    for text, reason in [
        (b"", "begins with no name"),
        (b"\n", "begins with no name"),
        (b"\t1\n", "begins with no name"),
        (b"./\t0", "does not end in a newline"),
        (b"a\t1\t0\n" + OWN, "without its own line"),
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
        (OWN + b"\n" * 16_384, "16384 lines"),
    ]:
        with subtests.test(text=text, reason=reason):
            with pytest.raises(FormatError, match=reason) as caught:
                read_manifest(text, b"", b"some/place")
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
        read_manifest(OWN + b"a\t1\t0\nb\t1\t0\nc\t>t\t0\n", column, b"place")


def test_a_deep_chain_of_names_costs_no_more_than_its_bytes() -> None:
    with pytest.raises(FormatError, match="without the one above"):
        read_manifest(OWN + (b"d/" * 30_000 + b"\t0\n") * 250, b"", b"place")
