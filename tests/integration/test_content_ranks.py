"""Priority and share of content URLs, against real web servers and daemons."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_client.config.load import RankedUrl
from tests.support.nginx import Nginx, nginx
from tests.support.upstream import Site, Upstream, assert_equal

FILES = 480
Sync = Callable[..., None]


@pytest.fixture(name="up", scope="module")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"d", FILES)
    up.commit()
    return up


@pytest.fixture(name="servers")
def three_servers(up: Upstream) -> Iterator[list[Nginx]]:
    with nginx(up.tree.parent) as one, nginx(up.tree.parent) as two, nginx(up.tree.parent) as three:
        yield [one, two, three]


@pytest.fixture(name="sync")
def sync_from(place: Site, up: Upstream) -> Sync:
    """A function that syncs a new downstream from these content URLs."""

    def sync(*urls: str | RankedUrl) -> None:
        down = place.downstream(up, content_urls=urls)
        down.synced()
        assert_equal(up, down)

    return sync


def counts(servers: list[Nginx]) -> list[int]:
    return [len(server.requests) for server in servers]


def test_others_bring_the_files_that_the_first_lacks(
    sync: Sync, up: Upstream, servers: list[Nginx], tmp_path: Path
) -> None:
    some = tmp_path / up.name / "d"
    some.mkdir(parents=True)
    names = sorted(path.name for path in (up.tree / "d").iterdir())
    for name in names[:100]:
        shutil.copy2(up.tree / "d" / name, some)
    with nginx(tmp_path) as first:
        sync(
            RankedUrl(f"{first.url}/{up.name}", priority=1),
            RankedUrl(f"{servers[1].url}/{up.name}", priority=7),
            f"{servers[0].url}/{up.name}",
        )
        assert len(first.requests) == FILES
    assert counts(servers) == [FILES - 100, 0, 0], "a text alone is of priority 1"


def test_files_are_divided_by_shares(sync: Sync, up: Upstream, servers: list[Nginx]) -> None:
    pairs = zip(servers, (3, 1, 0), strict=True)
    sync(*(RankedUrl(f"{server.url}/{up.name}", share=share) for server, share in pairs))
    one, two, three = counts(servers)
    assert one + two == FILES
    assert 2 * two < one < 4 * two
    assert three == 0


def test_a_url_without_a_share_stands_in(sync: Sync, up: Upstream, servers: list[Nginx]) -> None:
    missing = f"{servers[0].url}/nothing"
    sync(RankedUrl(f"{servers[1].url}/{up.name}"), RankedUrl(missing, share=1))
    assert len(servers[1].requests) == FILES


def test_a_path_a_daemon_and_a_web_server(
    sync: Sync, place: Site, up: Upstream, servers: list[Nginx]
) -> None:
    urls = (str(up.tree), f"{place.content_url}/{up.name}", f"{servers[0].url}/{up.name}")
    sync(*(RankedUrl(url, share=1) for url in urls))
    assert 0 < len(servers[0].requests) < FILES / 2
