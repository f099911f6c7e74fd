"""Fedora's lists, compared with those of `create-filelist` for the same tree."""

import os
from pathlib import Path

import pytest

from tests.support.exporting import Exporter
from tests.support.mirror_files import Row, names, time_list


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    return Exporter(short_path, files=())


def rows(exporter: Exporter) -> dict[str, Row]:
    exporter.upstream.commit()
    exporter.outside("fedora")
    return {row.path: row for row in time_list(exporter.read("fullfiletimelist-m"))}


def test_types_sizes_and_times_are_those_of_the_tree(exporter: Exporter) -> None:
    upstream = exporter.upstream
    upstream.write("d/file", "12345", mtime=1_000_000_000.75)
    upstream.write("empty", "", mtime=0)
    (upstream.tree / "link").symlink_to("d/file")
    os.utime(upstream.tree / "d", (1_100_000_000, 1_100_000_000))
    os.utime(upstream.tree / "link", (1_200_000_000, 1_200_000_000), follow_symlinks=False)
    assert rows(exporter) == {
        "d": Row(1_100_000_000, "d", 0, "d"),
        "d/file": Row(1_000_000_000, "f", 5, "d/file"),
        "empty": Row(0, "f", 0, "empty"),
        "link": Row(1_200_000_000, "l", 6, "link"),
    }


def test_a_time_before_1970_is_0(exporter: Exporter) -> None:
    """The first copy of quick-fedora-mirror leaves out older files."""
    place = exporter.upstream.write("old")
    os.utime(place, ns=(-1_500_000_000, -1_500_000_000))
    assert rows(exporter)["old"].time == 0


def test_a_size_beyond_what_a_double_holds_is_exact(exporter: Exporter) -> None:
    exporter.upstream.configure(digest="off")
    size = 2**53 + 1
    place = exporter.upstream.write("huge.iso")
    try:
        os.truncate(place, size)
    except OSError:  # ext4 ends at 16 TiB
        size = 2**43 + 1
        os.truncate(place, size)
    assert rows(exporter)["huge.iso"].size == size


def test_what_others_may_not_read_is_marked_and_what_the_group_may_not_is_left_out(
    exporter: Exporter,
) -> None:
    upstream = exporter.upstream
    for path, mode in {"a": 0o640, "b": 0o600, "early/c": 0o644, "early/d": 0o640}.items():
        upstream.write(path).chmod(mode)
    upstream.write("secret/deep/e")
    upstream.write("early/in/f")
    (upstream.tree / "early").chmod(0o750)
    (upstream.tree / "secret").chmod(0o700)
    upstream.write("zlast")
    kinds = {path: row.kind for path, row in rows(exporter).items()}
    assert kinds == {
        "a": "f-",
        "early": "d-",
        "early/c": "f*",
        "early/d": "f-",
        "early/in": "d*",
        "early/in/f": "f*",
        "zlast": "f",
    }


def test_names_that_no_line_can_hold_are_left_out_with_all_below_and_counted(
    exporter: Exporter,
) -> None:
    tree = os.fsencode(exporter.upstream.tree)
    bad = (b"new\nline", b"ta\tb", b"re\rturn", b"\xff", b"e\xc3", b"\x7f", b"\xc2\x85")
    for name in bad:
        Path(os.fsdecode(tree + b"/" + name)).write_text("")
    Path(os.fsdecode(tree + b"/d\n")).mkdir()
    Path(os.fsdecode(tree + b"/d\n/below")).write_text("")
    exporter.upstream.write(".nfs000001")
    good = ("with space", "\u00e9", "[Files]", "#", "a\u2028b", "-", "d/ok")
    for path in good:
        exporter.upstream.write(path)
    assert set(rows(exporter)) == {*good, "d"}
    result = exporter.outside("fedora")
    assert result.left_out == len(bad) + 1
    assert set(names(exporter.read("fullfilelist"))) == {*good, "d"}


def test_the_image_list_has_the_images(exporter: Exporter) -> None:
    for path in ("a.iso", "d/b.qcow2", "c.raw.xz", "x.rpm", "iso", "e.tar.gz"):
        exporter.upstream.write(path)
    rows(exporter)
    assert names(exporter.read("imagelist-m")) == ["a.iso", "c.raw.xz", "e.tar.gz", "d/b.qcow2"]


def test_an_empty_tree_has_empty_lists(exporter: Exporter) -> None:
    exporter.upstream.commit(allow_empty=True)
    exporter.outside("fedora")
    text = exporter.read("fullfiletimelist-m")
    assert text == b"[Version]\n2\n\n[Files]\n\n[Checksums SHA1]\n\n[End]\n"
    assert exporter.read("fullfilelist") == b""
    assert exporter.read("imagelist-m") == b""


def test_lists_in_the_tree_name_all_that_a_client_may_not_delete(short_path: Path) -> None:
    """quick-fedora-mirror deletes files that the list does not name, except the three lists."""
    exporter = Exporter(short_path, list_name="fedora", sums=("d",))
    exporter.upstream.write("d/file")
    exporter.upstream.commit()
    exporter.export()
    tree = exporter.upstream.tree
    lists = {"fullfiletimelist-fedora", "fullfilelist", "imagelist-fedora"}
    listed = time_list((tree / "fullfiletimelist-fedora").read_bytes())
    paths = {str(path.relative_to(tree)) for path in tree.rglob("*")}
    assert {row.path for row in listed} == paths - lists
    assert set(names((tree / "fullfilelist").read_bytes())) == paths - lists
    for row in listed:
        status = (tree / row.path).lstat()
        if row.kind == "f":
            assert (row.size, row.time) == (status.st_size, int(status.st_mtime)), row
