"""rsync's command lines, one argument a line."""

import re

import pytest

from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.arguments import Basis, Sides, arguments, most, names
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import rel_path
from tests.conftest import Golden
from tests.support.schema import trees

INFO = re.compile(
    r"(backup|copy|del|flist|misc|mount|name|progress|remove|skip|stats|symsafe)[0-9]"
)
"""The items of --info that rsync 3.1.3 knows; it refuses to run with any other."""
NEWER = re.compile(rb"--(trust-sender|mkpath|fsync|secluded|old-args|(compress|checksum)-choice)")

FULL = TransferOptions(bwlimit=1000, extra=("-e", "ssh -p 22"), program="/opt/rsync")


@pytest.mark.parametrize(
    ("name", "options", "url"),
    [
        ("daemon", TransferOptions(), "rsync://h/m"),
        ("shell", FULL, "u@h:/srv"),
        ("local", TransferOptions(timeout=5), "/srv/mirror"),
    ],
)
def test_arguments(golden: Golden, name: str, options: TransferOptions, url: str) -> None:
    own = ContentUrl.parse(url)._replace(own=True)
    line = arguments(options, own, Basis(b"/dest"), options.bwlimit // 2, 5000)
    golden.check(f"rsync_{name}.txt", b"\n".join([*line, b""]).decode())


def test_an_old_rsync_knows_all_options() -> None:
    line = arguments(TransferOptions(), ContentUrl.parse("rsync://h/m"), Basis(), 0, 5000)
    (info,) = (each for each in line if each.startswith(b"--info="))
    assert all(map(INFO.fullmatch, info.decode().removeprefix("--info=").split(",")))
    assert not any(map(NEWER.match, line))


def test_a_url_of_the_upstream_gets_no_login_of_ours() -> None:
    secret = ("--password-file=/etc/p", "-z", "-e", "ssh -i key", "--rsh=ssh", "-essh")
    url = ContentUrl.parse("rsync://h/m")
    theirs = arguments(TransferOptions(extra=secret), url, Basis(b"/dest"), 0, 5000)
    assert theirs == arguments(TransferOptions(extra=("-z",)), url, Basis(b"/dest"), 0, 5000)
    ours = arguments(
        TransferOptions(extra=secret), url._replace(own=True), Basis(b"/dest"), 0, 5000
    )
    assert ours[1:7] == [each.encode() for each in secret]
    assert not any(each.startswith(b"--contimeout") for each in ours)  # rsync refuses it with -e


@pytest.mark.parametrize(
    ("basis", "size", "inplace"),
    [
        (Basis(), 256 << 10, True),
        (Basis(), (256 << 10) + 1, False),
        (Basis(b"/dest"), 1, False),
        (Basis(partials=True), 1, False),
    ],
)
def test_only_small_files_without_a_basis_are_written_in_place(
    basis: Basis, size: int, inplace: bool
) -> None:
    largest, _ = most([1, size])
    line = arguments(TransferOptions(), ContentUrl.parse("rsync://h/m"), basis, 0, largest)
    assert (b"--inplace" in line, b"--sparse" in line) == (inplace, not inplace)


@pytest.mark.parametrize(
    ("refused", "small", "large"),
    [
        ({"--inplace"}, {b"--sparse"}, {b"--sparse"}),
        ({"--sparse"}, {b"--inplace"}, set()),
        ({"--inplace", "--sparse"}, set(), set()),
    ],
)
def test_what_a_daemon_refuses_is_left_out(
    refused: set[str], small: set[bytes], large: set[bytes]
) -> None:
    for size, expected in ((1, small), (1 << 30, large)):
        url, sides = ContentUrl.parse("rsync://h/m"), Sides(refused=refused)
        line = arguments(TransferOptions(), url, Basis(), 0, size, sides)
        assert {b"--inplace", b"--sparse"} & {*line} == expected


def test_names_end_with_nul_and_begin_like_nothing_else() -> None:
    files = [File(rel_path(path), 0, 0) for path in (b"-e", b"#a\nb", b"c/d ")]
    top, below = (ContentUrl.parse(url) for url in ("rsync://h/m", "rsync://h/m/x/./y"))
    assert names(files, top) == (b"./-e\0./#a\nb\0./c/d \0", 0)
    assert names(files[:1], below) == (b"x/y/./-e\0", 0)
    assert names([], top) == (b"", 0)


def test_a_directory_is_named_if_all_its_files_are_requested(subtests: pytest.Subtests) -> None:
    top, below = (ContentUrl.parse(url) for url in ("rsync://h/m", "rsync://h/m/x"))
    two, three = trees.files(b"two", 2), trees.files(b"d/three", 3)
    link = three[1]._replace(path=rel_path(b"d/three/g"), link=three[1].path)
    symlink = Symlink(rel_path(b"two/symlink"), b"f000000", 0)
    flat = trees.snapshot(trees.tree_of(*trees.files(b"", 1100)))
    places = [Directory(rel_path(path), 0) for path in (b"two", b"d", b"d/three")]
    nested = trees.tree_of(Directory(rel_path(b"two/empty"), 0))
    cases: list[tuple[str, trees.Tree, list[File], bytes]] = [
        ("all files", {}, [*two, *three], b"./two/\0./d/three/\0"),
        ("not all", {}, [*two, *three[1:]], b"./two/\0./d/three/f000001\0./d/three/f000002\0"),
        ("one", {}, two[:1], b"./two/f000000\0"),
        ("a symlink", trees.tree_of(symlink), two, b"./two/\0"),
        (
            "a hardlink",
            trees.tree_of(link),
            three,
            b"./d/three/f000000\0./d/three/f000001\0./d/three/f000002\0",
        ),
        ("a subdirectory", nested, two, b"./two/f000000\0./two/f000001\0"),
        (
            "not together",
            {},
            [two[0], three[0], two[1]],
            b"./two/f000000\0./d/three/f000000\0./two/f000001\0",
        ),
        ("not listed", {}, trees.files(b"new", 2), b"./new/f000000\0./new/f000001\0"),
    ]
    for case, additions, files, expected in cases:
        snapshot = trees.snapshot(trees.tree_of(*places, *two, *three) | additions)
        with subtests.test(case=case):
            assert names(files, top, snapshot) == (expected, expected.count(b"/\0"))
    assert names(trees.files(b"", 1100), top, flat) == (b"./\0", 1)
    assert names(trees.files(b"", 1100), below, flat) == (b"x/./\0", 1)
