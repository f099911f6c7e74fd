"""rsync's command lines, one argument a line."""

import pytest

from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.arguments import Basis, Sides, arguments, most, names
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from huai_schema.paths import rel_path
from tests.conftest import Golden

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
    assert names(files, top) == b"./-e\0./#a\nb\0./c/d \0"
    assert names(files[:1], below) == b"x/y/./-e\0"
