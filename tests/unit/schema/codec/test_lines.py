import re

import pytest

from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.entries import File, Symlink
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath

HERE = RelPath(b"pool/main")


def decode(text: bytes, column: bytes = b"") -> list[File | Symlink]:
    return list(decode_leaves(HERE, text, column))


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


@pytest.mark.parametrize(
    "hostile",
    [
        *(b"a" * (16 << 20), b"a\t1\t1" + b"\ta" * (8 << 20) + b"\n", b"\\" * (16 << 20)),
        *(b"a\t1\t1\n" + b"b\t1\t1\tu" + b"o" * (1 << 20) + b"\nc\t1\t1\n", b"\t" * (16 << 20)),
    ],
)
def test_a_long_line_is_refused_before_it_is_parsed(hostile: bytes) -> None:
    # A pattern alone would need hours, or gigabytes, for some of these.
    with pytest.raises(FormatError, match="65536 bytes"):
        decode(hostile)
    with pytest.raises(FormatError, match="canonical"):
        decode_directory(HERE, hostile[:-1])
