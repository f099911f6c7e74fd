import re

import pytest

from huai_schema import limits
from huai_schema.codec.lines import count_files, decode_directory, decode_leaves
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath
from tests.support.schema.lines import encode_leaf, encode_mtime, link_field

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
        (b"a\t5\t1", "canonical line"),
        (b"a\t05\t1\n", "canonical line"),
        (b"a\t-5\t1\n", "canonical line"),
        (b"a\t5\t1.0\n", "canonical line"),
        (b"a\t5\t1.1234567891\n", "canonical line"),
        (b"a\t5\t-0\n", "canonical line"),
        (b"a\t5\t01\n", "canonical line"),
        (b"a\t5\t\n", "canonical line"),
        (b"a\t5\t1\t\n", "canonical line"),
        (b"\t5\t1\n", "canonical line"),
        (b"a/b\t5\t1\n", "canonical line"),
        (b"a\rb\t5\t1\n", "canonical line"),
        (b"a\0b\t5\t1\n", "canonical line"),
        (b"a\t>\t1\n", "canonical line"),
        (b"a\t5\t1\r\n", "canonical line"),
        (b"\n", "canonical line"),
        (b".\t5\t1\n", "cannot name an entry"),
        (b"..\t5\t1\n", "cannot name an entry"),
        (b".~tmp~\t5\t1\n", "reserved"),
        (b".~TMP~\t>t\t1\n", "reserved"),
        (b"b\t5\t1\th.~Tmp~/a\n", "reserved"),
        (b"a\\x00\t5\t1\n", "NUL"),
        (b"a\\x2f\t5\t1\n", "stray backslash"),
        (b"a\\x0A\t5\t1\n", "stray backslash"),
        (b"a\\\t5\t1\n", "stray backslash"),
        (b"n" * 256 + b"\t5\t1\n", "255"),
        (b"a\t9223372036854775808\t1\n", "size"),
        (b"a\t5\t9223372037\n", "time out of range"),
        (b"a\t5\t1\tm644\n", "canonical mode"),
        (b"a\t5\t1\tm0644\n", "canonical mode"),
        (b"a\t5\t1\tm17777\n", "canonical mode"),
        (b"a\t5\t1\tm8\n", "canonical mode"),
        (b"a\t5\t1\tm\n", "canonical mode"),
        (b"a\t5\t1\turoot\n", "canonical owner"),
        (b"a\t5\t1\tu\n", "canonical owner"),
        (b"a\t5\t1\tu\\x00\n", "canonical owner"),
        (b"a\t5\t1\tu" + b"o" * 256 + b"\n", "canonical owner"),
        (b"a\t5\t1\tgx\tuy\n", "out of order"),
        (b"a\t5\t1\tux\tuy\n", "out of order"),
        (b"a\t5\t1\tzz\tuy\n", "out of order"),
        (b"a\t5\t1\tZnew\n", "must understand"),
        (b"a\t5\t1\t7\n", "must understand"),
        (b"a\t5\t1\t\xc3\n", "must understand"),
        (b"a\t>t\t1\thb\n", "symlink cannot be a hardlink"),
        (b"a\t>" + b"t" * 4096 + b"\t1\n", "target"),
        (b"a\t>\\x00\t1\n", "target"),
        (b"b\t5\t1\th\n", "an empty name"),
        (b"b\t5\t1\tha/../a\n", "'..' cannot name"),
        (b"b\t5\t1\th/a\n", "an empty name"),
        (b"b\t5\t1\th../main/a\n", "canonical hardlink"),
        (b"b\t5\t1\th../../../a\n", "out of the module"),
        (b"b\t5\t1\th../..\n", "cannot name"),
        (b"b\t5\t1\thb\n", "canonical hardlink"),
        (b"b\t5\t1\thc\n", "canonical hardlink"),
        (b"b\t5\t1\thdeep/a\n", "canonical hardlink"),
        (b"b\t5\t1\th../zoo/a\n", "canonical hardlink"),
    ]:
        with subtests.test(line=line, reason=reason):
            with pytest.raises(FormatError, match=re.escape(reason)) as caught:
                decode(line)
            assert caught.value.place.startswith("pool/main/")


def test_a_leader_may_stand_anywhere_before_its_link(subtests: pytest.Subtests) -> None:
    for link in [b"../../a", b"../a", b"a", b"../a/x", b"../a/zzz", b"../../0/x"]:
        with subtests.test(link=link):
            (entry,) = decode(b"b\t5\t1\th" + link + b"\n")
            assert isinstance(entry, File)
            assert entry.link
            assert link_field(entry.path, entry.link) == b"\th" + link


@pytest.mark.parametrize("names", [(b"b", b"a"), (b"a", b"a"), (b"\\x0a", b"\\x09")])
def test_names_grow(names: tuple[bytes, bytes]) -> None:
    with pytest.raises(FormatError, match="not sorted or not unique"):
        decode(b"".join(name + b"\t5\t1\n" for name in names))


def test_names_are_sorted_raw_not_as_they_are_spelled() -> None:
    # TAB sorts before a space, its escape does not.
    assert len(decode(b"\\x09\t5\t1\n \t5\t1\n")) == 2


def test_unknown_fields_in_lower_case_are_ignored() -> None:
    assert decode(b"a\t5\t1\tux\tznew\tz\taanything\n") == decode(b"a\t5\t1\tux\n")


def test_digests_go_to_files_and_zeros_mean_none() -> None:
    text = b"a\t5\t1\nb\t>t\t1\nc\t5\t1\n"
    first, _, second = decode(text, bytes(32) + b"d" * 32)
    assert isinstance(first, File)
    assert isinstance(second, File)
    assert (first.digest, second.digest) == (None, b"d" * 32)
    assert count_files(text) == 2


@pytest.mark.parametrize("column", [b"d" * 32, b"d" * 96, b"d" * 63])
def test_a_column_of_the_wrong_length_is_refused(column: bytes) -> None:
    with pytest.raises(FormatError, match="one digest for each file"):
        decode(b"a\t5\t1\nb\t5\t1\n", column)


def test_paths_are_bounded_where_names_are_joined() -> None:
    deep = RelPath(b"/".join([b"d" * 255] * 15 + [b"d" * 200]))
    names = limits.PATH_BYTES - len(deep) - 1
    assert list(decode_leaves(deep, b"n" * names + b"\t5\t1\n"))
    with pytest.raises(FormatError, match="4095"):
        list(decode_leaves(deep, b"n" * (names + 1) + b"\t5\t1\n"))


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


def test_many_short_lines_are_no_long_line() -> None:
    text = b"".join(b"%06d\t5\t1\n" % n for n in range(10_000))
    assert len(decode(text)) == 10_000


def test_a_line_may_be_as_long_as_all_its_parts() -> None:
    target, owner = b"\n" * 4095, b"\\" * limits.OWNER_BYTES
    leaf = Symlink(RelPath(b"pool/main/" + b"\x7f" * 255), target, 1, 0, owner, owner)
    assert decode(encode_leaf(leaf)) == [leaf]


def test_directory_attributes_are_canonical_too(subtests: pytest.Subtests) -> None:
    for attributes in [b"", b"1\n", b"1\tm755", b"1\tha", b"x", b"1\t", b"1.50", b"1\tZ"]:
        with subtests.test(attributes=attributes):
            with pytest.raises(FormatError, match="pool/main"):
                decode_directory(HERE, attributes)
