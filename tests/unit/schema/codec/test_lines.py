import re

import pytest

from huai_schema import limits
from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath
from tests.support.schema.lines import encode_leaf, encode_mtime

HERE = RelPath(b"pool/main")


def decode(text: bytes, column: bytes = b"") -> list[File | Symlink]:
    return list(decode_leaves(HERE, text, column))


def test_defaults_are_left_out() -> None:
    assert encode_leaf(File(RelPath(b"pool/main/a"), 5, 10**9)) == b"a\t5\t1\n"


def test_every_field_has_its_place() -> None:
    path, leader = RelPath(b"pool/main/b"), RelPath(b"pool/a")
    leaf = File(path, 5, -1, 0o4755, b"ftp", b"#7", leader)
    assert encode_leaf(leaf) == b"b\t5\t-1.999999999\tm4755\tuftp\tg#7\th../a\n"
    assert decode(encode_leaf(leaf)) == [leaf]


def test_times_are_floored_and_the_rest_added(subtests: pytest.Subtests) -> None:
    for nanoseconds, text in [
        (0, b"0"),
        (1, b"0.000000001"),
        (10**9, b"1"),
        (1_500_000_000, b"1.5"),
        (-1_500_000_000, b"-2.5"),
        (-(10**9), b"-1"),
        (-1, b"-1.999999999"),
    ]:
        with subtests.test(nanoseconds=nanoseconds, text=text):
            assert encode_mtime(nanoseconds) == text
            assert decode_directory(HERE, text) == Directory(HERE, nanoseconds)


def test_a_line_that_breaks_a_rule_is_refused_with_its_place(subtests: pytest.Subtests) -> None:
    for line, reason in [
        (b"a\t-5\t1\n", "canonical line"),
        (b"a\t5\t\n", "canonical line"),
        (b"a\0b\t5\t1\n", "canonical line"),
        (b"a\t5\t1\r\n", "canonical line"),
        (b"\n", "canonical line"),
        (b".\t5\t1\n", "cannot name an entry"),
        (b".~tmp~\t5\t1\n", "reserved"),
        (b"b\t5\t1\th.~Tmp~/a\n", "reserved"),
        (b"a\\x0A\t5\t1\n", "stray backslash"),
        (b"a\\\t5\t1\n", "stray backslash"),
        (b"a\t9223372036854775808\t1\n", "size"),
        (b"a\t5\t1\tm17777\n", "canonical mode"),
        (b"a\t5\t1\tm8\n", "canonical mode"),
        (b"a\t5\t1\tm\n", "canonical mode"),
        (b"a\t5\t1\tu\\x00\n", "canonical owner"),
        (b"a\t5\t1\tu" + b"o" * 256 + b"\n", "canonical owner"),
        (b"a\t5\t1\t7\n", "must understand"),
        (b"a\t5\t1\t\xc3\n", "must understand"),
        (b"a\t>" + b"t" * 4096 + b"\t1\n", "target"),
        (b"a\t>\\x00\t1\n", "target"),
        (b"b\t5\t1\th\n", "an empty name"),
        (b"b\t5\t1\tha/../a\n", "'..' cannot name"),
        (b"b\t5\t1\th/a\n", "an empty name"),
        (b"b\t5\t1\th../..\n", "cannot name"),
    ]:
        with subtests.test(line=line, reason=reason):
            with pytest.raises(FormatError, match=re.escape(reason)) as caught:
                decode(line)
            assert caught.value.place.startswith("pool/main/")


def test_names_are_sorted_raw_not_as_they_are_spelled() -> None:
    # TAB sorts before a space, its escape does not.
    assert len(decode(b"\\x09\t5\t1\n \t5\t1\n")) == 2


@pytest.mark.parametrize(
    "hostile",
    [
        b"a" * (16 << 20),
        b"a\t1\t1" + b"\ta" * (8 << 20) + b"\n",
        b"\\" * (16 << 20),
        b"a\t1\t1\n" + b"b\t1\t1\tu" + b"o" * (1 << 20) + b"\nc\t1\t1\n",
        b"\t" * (16 << 20),
    ],
)
def test_a_long_line_is_refused_before_it_is_parsed(hostile: bytes) -> None:
    # A pattern alone would need hours, or gigabytes, for some of these.
    with pytest.raises(FormatError, match="65536 bytes"):
        decode(hostile)
    with pytest.raises(FormatError, match="canonical"):
        decode_directory(HERE, hostile[:-1])


def test_a_line_may_be_as_long_as_all_its_parts() -> None:
    target, owner = b"\n" * 4095, b"\\" * limits.OWNER_BYTES
    leaf = Symlink(RelPath(b"pool/main/" + b"\x7f" * 255), target, 1, 0, owner, owner)
    assert decode(encode_leaf(leaf)) == [leaf]
