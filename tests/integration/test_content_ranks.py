"""Priority and share of content URLs, against real web servers and daemons."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.config.content_place import ContentPlace
from tests.support.nginx import Nginx, nginx
from tests.support.upstream import Site, Upstream, assert_equal

FILES = 480


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


def counted(servers: list[Nginx]) -> list[int]:
    return [len(each.requests) for each in servers]


def test_the_lowest_number_is_asked_first(place: Site, up: Upstream, servers: list[Nginx]) -> None:
    places = [
        ContentPlace(f"{each.url}/{up.name}", priority)
        for each, priority in zip(servers, (3, 1, 2), strict=True)
    ]
    down = place.downstream(up, content_urls=tuple(places))
    down.synced()
    assert_equal(up, down)
    assert counted(servers) == [0, FILES, 0]


def test_others_bring_what_the_first_lacks(
    place: Site, up: Upstream, servers: list[Nginx], tmp_path: Path
) -> None:
    some = tmp_path / up.name / "d"
    some.mkdir(parents=True)
    names = sorted(path.name for path in (up.tree / "d").iterdir())
    for name in names[:100]:
        shutil.copy2(up.tree / "d" / name, some)
    with nginx(tmp_path) as first:
        places = (
            f"{servers[0].url}/{up.name}",
            ContentPlace(f"{servers[1].url}/{up.name}", priority=7),
            ContentPlace(f"{first.url}/{up.name}", priority=1),
        )
        down = place.downstream(up, content_urls=(places[2], places[1], places[0]))
        down.synced()
        assert_equal(up, down)
        assert len(first.requests) == FILES
    assert counted(servers) == [FILES - 100, 0, 0], "a text alone is of priority 1"


def test_files_are_divided_by_shares(place: Site, up: Upstream, servers: list[Nginx]) -> None:
    shares = Counter({0: 3, 1: 1, 2: 0})
    places = [
        ContentPlace(f"{each.url}/{up.name}", share=shares[number])
        for number, each in enumerate(servers)
    ]
    down = place.downstream(up, content_urls=tuple(places))
    down.synced()
    assert_equal(up, down)
    one, two, three = counted(servers)
    assert one + two == FILES
    assert 2 * two < one < 4 * two
    assert three == 0


def test_who_has_no_share_stands_in(place: Site, up: Upstream, servers: list[Nginx]) -> None:
    gone = f"{servers[0].url}/nothing"
    places = (ContentPlace(f"{servers[1].url}/{up.name}"), ContentPlace(gone, share=1))
    down = place.downstream(up, content_urls=places)
    down.synced()
    assert_equal(up, down)
    assert len(servers[1].requests) == FILES


def test_a_path_a_daemon_and_a_web_server(place: Site, up: Upstream, servers: list[Nginx]) -> None:
    places = (
        ContentPlace(str(up.tree), share=1),
        ContentPlace(f"{place.content_url}/{up.name}", share=1),
        ContentPlace(f"{servers[0].url}/{up.name}", share=1),
    )
    down = place.downstream(up, content_urls=places)
    down.synced()
    assert_equal(up, down)
    assert 0 < len(servers[0].requests) < FILES / 2
