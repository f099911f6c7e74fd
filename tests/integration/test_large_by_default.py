"""Large files come from `serve` where only rsync daemons are named for content."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from huai_server.config.tables import ModuleFallback
from tests.integration.test_large_files import BLOCK, CONTENT, INDEXED, LATER, NAME, SCATTERED
from tests.support.committing import run_server
from tests.support.upstream import Site, Upstream, assert_equal, site

DAEMON_DOWN = "rsync://127.0.0.1:1/none"
HIDDEN, CLOSED = b"images/hidden.img", b"closed/disk.img"


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    return with_files(place.upstream(block_index=INDEXED))


def with_files(up: Upstream) -> Upstream:
    up.put(NAME, CONTENT)
    up.put(b"small", CONTENT[: INDEXED - 1])
    return up


def status(place: Site, up: Upstream, path: bytes, **headers: str) -> int:
    url = f"{place.url}/content/{up.name}/{os.fsdecode(path)}"
    return httpx.get(url, headers=headers).status_code


def is_linked(place: Site, up: Upstream) -> bool:
    """True if the server names content with the index of the image."""
    (index,) = up.places.repository.glob("blocks/??/*")
    response = httpx.get(f"{place.url}/git/{up.name}.git/blocks/{index.parent.name}/{index.name}")
    assert response.status_code == 200
    return "link" in response.headers


def commit_without_daemon(up: Upstream, path: bytes, content: bytes) -> None:
    """Commit a change of one file, whose content no daemon has."""
    up.change(content_urls=(DAEMON_DOWN,))
    up.put(path, content, mtime=LATER)
    up.commit()


@pytest.mark.parametrize("settings", [{}, {"in_place": ["*.img"]}])
def test_missing_blocks_come_from_serve(
    up: Upstream, place: Site, settings: dict[str, Any]
) -> None:
    down = place.synced_downstream(up, **settings)
    commit_without_daemon(up, NAME, SCATTERED)
    assert 3 * BLOCK < down.synced()["received"] < 4 * BLOCK
    assert_equal(up, down)


@pytest.mark.parametrize("path", [b"images/new", NAME], ids=["new", "replaced"])
def test_a_file_without_an_equal_block_comes_by_rsync(
    up: Upstream, place: Site, path: bytes
) -> None:
    down = place.synced_downstream(up)
    url = f"{place.content_url}/{up.name}"
    commit_without_daemon(up, path, os.urandom(len(CONTENT)))
    assert down.sync().code == 10
    up.change(content_urls=(url,))
    up.commit()
    down.synced()
    assert_equal(up, down)


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Site]:
    """A site without other tests, which expect no private module."""
    with site(tmp_path / "site") as started:
        yield started


def test_a_private_module_needs_its_token(
    own_place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = own_place
    up = with_files(place.upstream(block_index=INDEXED, access="private"))
    created = run_server(up.root, "token", "new", up.name)
    token = next(word for word in created.stdout.split() if word.startswith("huai_"))
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login huai password {token}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    down = place.synced_downstream(up)
    commit_without_daemon(up, NAME, SCATTERED)
    assert down.synced()["received"] < 4 * BLOCK
    assert_equal(up, down)
    assert status(place, up, NAME) == 401
    assert status(place, up, NAME, Authorization=f"Bearer {token}") == 200


def test_only_files_with_an_index_are_served(up: Upstream, place: Site) -> None:
    up.put(HIDDEN, CONTENT + b"1", mode=0o640)
    up.put(CLOSED, CONTENT + b"2")
    up.at(b"closed").chmod(0o750)
    up.commit()
    assert status(place, up, NAME) == 200
    assert status(place, up, NAME, Range="bytes=5-9") == 206
    for path in (b"small", b"absent", HIDDEN, CLOSED):
        assert status(place, up, path) == 404, path
    up.at(b"closed").chmod(0o755)
    assert status(place, up, CLOSED) == 200
    up.change(serve_content=True)
    for path in (b"small", HIDDEN):
        assert status(place, up, path) == 200, path


@pytest.mark.parametrize(
    "settings",
    [
        {"serve_content": False},
        {"content_urls": ()},
        {"content_urls": ("rsync://mirror@127.0.0.1/tree",)},
        {"fallback": ModuleFallback(auth_users=("mirror",), max_connections=1)},
        {"fallback": ModuleFallback(hosts_allow=("192.0.2.0/24",), max_connections=1)},
        {"fallback": ModuleFallback(hosts_deny=("192.0.2.0/24",), max_connections=1)},
    ],
    ids=["off", "no URL", "user", "fallback users", "allowed hosts", "denied hosts"],
)
def test_what_is_not_for_everybody_is_not_served(
    up: Upstream, place: Site, settings: dict[str, object]
) -> None:
    up.commit()
    assert (status(place, up, NAME), is_linked(place, up)) == (200, True)
    up.change(**settings)
    assert (status(place, up, NAME), is_linked(place, up)) == (404, False)
