"""Headers for our own URLs, and for no other."""

from pathlib import Path

import pytest

from huai_client.transfer.http.login import headers_for, read_headers
from huai_client.transfer.options import TransferOptionsError
from huai_client.transfer.urls import ContentUrl

NAMED = ContentUrl.parse("https://h.example/m")
OWN = NAMED._replace(own=True)


@pytest.fixture(name="netrc")
def netrc_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "netrc"
    path.write_text("machine h.example login me password secret\n")
    monkeypatch.setenv("NETRC", str(path))
    return path


@pytest.fixture(name="file")
def file_of_headers(tmp_path: Path) -> Path:
    path = tmp_path / "headers"
    path.write_text("# a token\nX-Token: abc\n\n")
    path.chmod(0o640)
    return path


@pytest.mark.usefixtures("netrc")
def test_only_own_urls_get_anything(file: Path) -> None:
    assert headers_for(NAMED, file) == ()
    login = "Authorization: Basic bWU6c2VjcmV0"
    assert headers_for(OWN, file) == ("X-Token: abc", login)
    assert headers_for(OWN, None) == (login,)
    assert headers_for(ContentUrl.parse("https://other/")._replace(own=True), None) == ()


@pytest.mark.usefixtures("netrc")
def test_the_files_own_login_comes_first(file: Path) -> None:
    file.write_text("authorization: Bearer t\n")
    assert headers_for(OWN, file) == ("authorization: Bearer t",)


@pytest.mark.parametrize(
    "line",
    [
        *("Range: bytes=0-1", "Host: other", "accept-encoding: gzip", "no colon", "A B: c", ": c"),
        "X: \u00e4",
    ],
)
def test_what_decides_which_bytes_come_cannot_be_set(file: Path, line: str) -> None:
    file.write_text(f"X-Token: abc\n{line}\n")
    with pytest.raises(TransferOptionsError) as caught:
        read_headers(file)
    assert "abc" not in caught.value.message


def test_a_file_that_others_may_read_is_refused(file: Path) -> None:
    file.chmod(0o644)
    with pytest.raises(TransferOptionsError, match="every user"):
        read_headers(file)
    with pytest.raises(TransferOptionsError, match="No such file"):
        read_headers(file.with_name("absent"))
