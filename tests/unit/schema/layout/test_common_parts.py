"""What two manifests share is left out in whole units, never in part of one."""

from collections.abc import Callable

import pytest

from huai_schema.layout.common_parts import Text, without_common_lines, without_common_units
from huai_schema.layout.manifest import decode_manifest

OWN = b"./\t0\n"
D1, D2, D3 = b"1" * 32, b"2" * 32, b"3" * 32


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (OWN + b"a\t1\t0\nb\t1\t0\n", OWN + b"a\t1\t0\nb\t2\t0\n", (b"b\t1\t0\n", b"b\t2\t0\n")),
        # The line that was added belongs to x, whose header both sides begin with.
        (OWN + b"x/\t0\nf\t1\t0\n", OWN + b"x/\t0\nf\t1\t0\ng\t1\t0\n",
         (b"x/\t0\nf\t1\t0\n", b"x/\t0\nf\t1\t0\ng\t1\t0\n")),
        (b"x/\t0\nx/y/\t0\nz/\t0\n", b"x/\t0\nx/y/\t1\nz/\t0\n",
         (b"x/\t0\nx/y/\t0\n", b"x/\t0\nx/y/\t1\n")),
        # The same leaf, once of the directory itself and once of x.
        (OWN + b"f\t1\t0\n", OWN + b"x/\t0\nf\t1\t0\n", (b"f\t1\t0\n", b"x/\t0\nf\t1\t0\n")),
        # A symlink to a directory ends its target in a slash and begins no unit.
        (OWN + b"a\t1\t0\nl\t>d/\t0\nz\t1\t0\n", OWN + b"a\t1\t0\nl\t>d/\t0\nz\t2\t0\n",
         (b"z\t1\t0\n", b"z\t2\t0\n")),
        (b"./\t0\na\t1\t0\n", b"./\t1\na\t1\t0\n", (b"./\t0\n", b"./\t1\n")),
        (OWN, OWN, (b"", b"")),
    ],
)  # fmt: skip
def test_whole_units_are_left(old: bytes, new: bytes, left: tuple[bytes, bytes]) -> None:
    trimmed = without_common_units(Text(old, b""), Text(new, b""))
    assert (trimmed[0].text, trimmed[1].text) == left
    for text in left:
        if text:
            decode_manifest(text, b"", "what is left can be read")


def test_digests_go_with_their_lines() -> None:
    text = OWN + b"a\t1\t0\nb\t1\t0\nc\t1\t0\n"
    old, new = Text(text, D1 + D2 + D3), Text(text.replace(b"b\t1", b"b\t7"), D1 + D1 + D3)
    assert without_common_units(old, new) == (Text(b"b\t1\t0\n", D2), Text(b"b\t7\t0\n", D1))


@pytest.mark.parametrize("trim", [without_common_lines, without_common_units])
def test_lines_whose_digest_changed_are_not_shared(
    trim: Callable[[Text, Text], tuple[Text, Text]],
) -> None:
    text = b"a\t1\t0\nb\t1\t0\n"
    old, new = Text(text, D1 + D2), Text(text, D3 + D2)
    assert trim(old, new) == (old, new)
    old, new = Text(text, D1 + D2), Text(text, b"")
    assert trim(old, new) == (old, new)


def test_digests_are_not_cut_where_files_cannot_be_counted() -> None:
    # Owners with a slash at the end look like directories to the quick count.
    text = OWN + b"a\t1\t0\tub/\tgc\nb\t1\t0\nc\t1\t0\n"
    old, new = Text(text, D1 + D2 + D3), Text(text.replace(b"b\t1", b"b\t7"), D1 + D1 + D3)
    assert without_common_units(old, new) == (old, new)


def test_a_symlink_to_a_directory_is_no_file_and_no_directory() -> None:
    text = OWN + b"a\t1\t0\nl\t>d/\t0\nz\t1\t0\n"
    old, new = Text(text, D1 + D2), Text(text.replace(b"z\t1", b"z\t2"), D1 + D3)
    assert without_common_units(old, new) == (Text(b"z\t1\t0\n", D2), Text(b"z\t2\t0\n", D3))
