"""rsync's log formats; the expected lines were copied from rsync 3.5.0."""

import pytest

from huai_client.huai_rsync.log import ITEMIZED, NAMED, Format, Item, unknown_escape

NEW = Item(b">f+++++++++", b"sub/n", size=7, mtime=0)
MODE = Item(b".f...p.....", b"a", brief=False)
LINK = Item(b"cL+++++++++", b"l", b" -> a")
FOLDER = Item(b"cd+++++++++", b"sub/")
GONE = Item(b"*deleting  ", b"g")


def test_lines(subtests: pytest.Subtests) -> None:
    for text, item, line in [
        (ITEMIZED, NEW, b">f+++++++++ sub/n"),
        (ITEMIZED, MODE, b".f...p..... a"),
        (ITEMIZED, LINK, b"cL+++++++++ l -> a"),
        (ITEMIZED, GONE, b"*deleting   g"),
        (ITEMIZED, Item(b"", b"touched"), None),
        (NAMED, NEW, b"sub/n"),
        (NAMED, MODE, None),
        (NAMED, LINK, b"l -> a"),
        (NAMED, GONE, b"deleting g"),
        ("%n", LINK, b"l"),
        ("%n", GONE, b"deleting g"),
        ("%o|%f|%l|100%%", NEW, b"recv|sub/n|7|100%"),
        ("%o %n", GONE, b"del. g"),
        ("%f|%n", FOLDER, b"sub|sub/"),
        ("", NEW, b""),
    ]:
        with subtests.test(text=text, item=item, line=line):
            assert Format(text).line(item) == line


@pytest.mark.parametrize(
    ("text", "unknown"), [("%n%L %i", ""), ("%b", "%b"), ("%'l", "%'"), ("%10n", "%1"), ("x%", "%")]
)
def test_what_is_left_to_rsync(text: str, unknown: str) -> None:
    assert unknown_escape(text) == unknown
