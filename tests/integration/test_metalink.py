"""Metalinks that `huai-server serve` serves, as their readers parse them (RFC 5854)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes
from xml.etree import ElementTree as ET

import httpx
import pytest

from huai_native._native import Blake3
from tests.support.committing import NAME, SECONDS, run_server
from tests.support.serving import Serving, serving

SPACE = "{urn:ietf:params:xml:ns:metalink}"
OWN = "{urn:x-huai:metalink}"
URLS = ("rsync://o.example/m", "https://o.example/a%20b/&c", "p.example::m/sub", "http://q.example")
TOPS = (*URLS[:2], "rsync://p.example/m/sub", URLS[3])
XML = (b"<script>alert(1)&amp;", b'it\'s "quoted"', b"]]>", b"\xc3\xa9 \xf0\x9f\x90\xa7")
SPACES = (b"new\nline", b"ta\tb", b"re\rturn", b" blanks  ")
UNNAMED = (b"\xff\xfe", b"esc\x1b[31m", b"\x01", b"\xef\xbf\xbf")


class Metalink(NamedTuple):
    name: str
    size: int
    digest: str | None
    urls: list[str]


def read(text: bytes) -> Metalink:
    """One file; elements in the order and number that the RFC has them."""
    top = ET.fromstring(text)  # noqa: S314 - our own server's
    assert top.tag == f"{SPACE}metalink"
    (file,) = top.findall(f"{SPACE}file")
    (size,) = file.findall(f"{SPACE}size")
    urls = file.findall(f"{SPACE}url")
    assert [url.get("priority") for url in urls] == [str(number + 1) for number in range(len(urls))]
    assert not file.findall(f"{SPACE}hash")  # its types are those of IANA's registry
    digest = file.find(f"{OWN}digest")
    assert digest is None or digest.get("type") == "blake3"
    name = file.get("name")
    assert name
    assert "/" not in name
    return Metalink(
        *(name, int(size.text or ""), None if digest is None else digest.text),
        [url.text or "" for url in urls],
    )


class Mirror:
    """A tree, its state, and the server of both."""

    server: Serving

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.root = folder / "state"
        for name in (*XML, *SPACES, *UNNAMED):
            self.write(b"d/" + name, name)
            self.write(name + b"/below", name)
        self.write(b"plain", b"content")
        (self.tree / "link").symlink_to("plain")
        urls = [part for url in URLS[:3] for part in ("--content-url", url)]
        add = ("add", NAME, str(self.tree), *urls, "--mirror", URLS[3])
        assert run_server(self.root, *add).returncode == 0
        self.commit()

    def write(self, path: bytes, content: bytes) -> None:
        place = Path(os.fsdecode(os.fsencode(self.tree) + b"/" + path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def commit(self) -> None:
        assert run_server(self.root, "commit", NAME).returncode == 0

    def get(self, path: bytes | str, module: str = NAME) -> httpx.Response:
        raw = path if isinstance(path, str) else quote_from_bytes(path)
        url = f"{self.server.url}/api/v1/modules/{module}/metalink/{raw}"
        return httpx.get(url, timeout=SECONDS)

    def read(self, path: bytes) -> Metalink:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/metalink4+xml"
        return read(answer.content)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    mirror = Mirror(tmp_path_factory.mktemp("mirror"))
    with serving(mirror.root) as mirror.server:
        yield mirror


def test_it_holds_urls_size_and_digest(mirror: Mirror) -> None:
    assert mirror.read(b"plain") == Metalink(
        "plain", 7, Blake3(b"content").digest().hex(), [f"{top}/plain" for top in TOPS]
    )


def test_any_name_that_xml_can_write_comes_through(
    mirror: Mirror, subtests: pytest.Subtests
) -> None:
    for name in (*XML, *SPACES):
        with subtests.test(name=name):
            metalink = mirror.read(b"d/" + name)
            assert metalink.name.encode() == name
            for url, top in zip(metalink.urls, TOPS, strict=True):
                assert url.startswith(f"{top}/d/")
                assert unquote_to_bytes(url[len(top) :]) == b"/d/" + name
                assert not set(url[len(top) :]) & set("<>\"' \t\n\r")
    for name in UNNAMED:
        with subtests.test(name=name):
            answer = mirror.get(b"d/" + name)
            assert answer.status_code == 404
            assert "metalink" in answer.json()["error"]


def test_a_directory_may_have_any_name(mirror: Mirror) -> None:
    for name in (*XML, *SPACES, *UNNAMED):
        metalink = mirror.read(name + b"/below")
        assert metalink.name == "below"
        assert unquote_to_bytes(metalink.urls[0].removeprefix(TOPS[0])) == b"/" + name + b"/below"


def test_what_the_commit_does_not_name_as_a_file_is_not_found(mirror: Mirror) -> None:
    assert mirror.get(b"plain", "other").status_code == 404
    odd = ("", "none", "d%2Fplain", "..%2Fplain", "%2e%2e/plain", "plain/", "//plain")
    for path in (*odd, "d", "link"):
        assert mirror.get(path).status_code == 404, path


def test_it_follows_the_newest_commit(short_path: Path) -> None:
    mirror = Mirror(short_path)
    config = mirror.root / "server.toml"
    config.write_text(config.read_text() + 'digest = "off"\n')
    with serving(mirror.root) as mirror.server:
        assert mirror.read(b"plain").digest
        mirror.write(b"plain", b"longer content")
        size = 2**43 + 1
        os.truncate(mirror.tree / "d/ blanks  ", size)
        mirror.commit()
        assert mirror.read(b"plain")[1:3] == (14, None)
        assert mirror.read(b"d/ blanks  ").size == size
        table = config.read_text().replace("content_urls", "exclude").replace("mirrors", "publish")
        config.write_text(table.replace(f'"{URLS[3]}"', ""))
        mirror.commit()
        answer = mirror.get(b"plain")
        assert answer.status_code == 404
        assert "content URLs" in answer.json()["error"]
