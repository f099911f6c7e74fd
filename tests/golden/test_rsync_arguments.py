"""rsync's command lines, one argument a line."""

import pytest

from huai_client.transfer.command import arguments, names
from huai_client.transfer.options import TransferOptions
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
    line = arguments(options, ContentUrl.parse(url), b"/dest", options.bwlimit // 2, 5000)
    golden.check(f"rsync_{name}.txt", b"\n".join([*line, b""]).decode())


def test_names_end_with_nul_and_begin_like_nothing_else() -> None:
    files = [File(rel_path(path), 0, 0) for path in (b"-e", b"#a\nb", b"c/d ")]
    assert names(files) == b"./-e\0./#a\nb\0./c/d \0"
