import pytest

from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, ancestors, basename, join, parent, rel_path, show


def test_unsafe_paths_are_refused(subtests: pytest.Subtests) -> None:
    for raw in [b"/a", b"a/", b"a//b", b".", b"a/./b", b"..", b"a/..", b"a\0b", b"n" * 256]:
        with subtests.test(raw=raw):
            with pytest.raises(FormatError):
                rel_path(raw)


@pytest.mark.parametrize("name", [b".~tmp~", b".~TMP~", b".~tMp~"])
def test_the_staging_areas_name_is_no_name_of_an_entry(name: bytes) -> None:
    for raw in (name, name + b"/huai", b"a/" + name, b"a/" + name + b"/b"):
        with pytest.raises(FormatError, match="reserved"):
            rel_path(raw)
    for raw in (name + b"2", b"x" + name, b".~tmp~.d/a"):
        assert rel_path(raw) == raw


def test_a_path_is_bounded() -> None:
    assert rel_path(b"a/" * 2047 + b"a")
    with pytest.raises(FormatError, match="4095"):
        rel_path(b"a/" * 2047 + b"aa")


def test_any_other_bytes_are_a_path(subtests: pytest.Subtests) -> None:
    for raw in [b"", b"a", b"...", b"..a/-/ ", b"a\n\t\\\xff", b"n" * 255]:
        with subtests.test(raw=raw):
            assert rel_path(raw) == raw


def test_paths_come_apart_and_together() -> None:
    path = rel_path(b"a/b/c")
    assert join(parent(path), basename(path)) == path
    assert join(ROOT, b"c") == b"c"
    assert ancestors(path) == [b"a/b", b"a", ROOT]
    assert not ancestors(ROOT)


def test_paths_are_shown_in_one_printable_line() -> None:
    assert show(b"a\n\xff\x1b\xc3\xa9") == "a\\n\\xff\\x1bé"
    assert show(ROOT) == "."
