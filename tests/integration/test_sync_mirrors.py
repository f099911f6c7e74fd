"""Other mirrors, which the upstream names: asked for what it does not have, and proved."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nginx import Nginx, nginx
from tests.support.upstream import T0, Site, Upstream, assert_equal, site
from tests.support.weak_network import silent


@pytest.fixture(name="place")
def a_site(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "site") as place:
        yield place


def create_upstream(place: Site, other: Nginx, **settings: object) -> Upstream:
    """Create a module with a mirror; the daemon has none of its files."""
    (place.folder / "trees/empty").mkdir()
    up = place.upstream(
        content_urls=(f"{place.content_url}/empty",), mirrors=(f"{other.url}/tree",), **settings
    )
    up.many(b"d", 30)
    up.put(b"large", os.urandom(3 << 20))
    up.commit()
    return up


def copy_tree(up: Upstream, folder: Path) -> Path:
    """Copy the tree to the mirror."""
    copy = folder / "tree"
    shutil.copytree(up.tree, copy)
    return copy


def test_a_mirror_has_what_the_upstream_cannot_give(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        copy_tree(up, tmp_path / "other")
        assert place.downstream(up).sync().code == 23
        assert other.requests == []
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        assert len(other.requests) == 31


def test_what_the_upstream_has_comes_from_there(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = place.upstream(mirrors=(f"{other.url}/tree",))
        up.many(b"d", 30)
        up.commit()
        copy_tree(up, tmp_path / "other")
        up.at(b"d/3").unlink()
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert down.dest.joinpath("d/3").read_bytes().startswith(b"d/3 ")
        assert [line.rpartition(" ")[2] for line in other.requests] == ["/tree/d/3"]


def test_a_mirror_that_lies_or_lags_is_no_harm(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        copy = copy_tree(up, tmp_path / "other")
        (copy / "d/1").unlink()
        lie = bytes(len(up.at(b"large").read_bytes()))
        (copy / "large").write_bytes(lie)
        os.utime(copy / "large", ns=(T0, T0))
        down = place.downstream(up, mirrors="auto")
        assert down.sync().code != 0
        assert not down.dest.joinpath("large").exists()
        assert not down.dest.joinpath("d/1").exists()


def test_a_mirror_is_not_asked_for_what_no_digest_proves(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other, volatile=("/d/2",))
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert down.dest.joinpath("d/1").exists()
        assert not down.dest.joinpath("d/2").exists()
        assert not any(line.endswith("/d/2") for line in other.requests)
        up.change(digest="off")
        up.put(b"d/5", b"changed", mtime=T0 + 10**9)
        up.commit()
        shutil.rmtree(tmp_path / "other/tree")
        copy_tree(up, tmp_path / "other")
        before = len(other.requests)
        assert place.downstream(up, mirrors="auto").sync().code != 0
        assert len(other.requests) == before


def test_the_fastest_mirror_is_asked_first(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other", location="limit_rate 64k;") as slow, nginx(tmp_path) as fast:
        up = create_upstream(place, slow)
        up.change(mirrors=(f"{slow.url}/tree", f"{fast.url}/other/tree"))
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        (sampled,) = slow.requests
        assert '"bytes=0-262143"' in sampled
        assert len(fast.requests) == 32
        rows = json.loads((down.root / "speeds.json").read_text())
        rates = {service: rate for service, _, rate, _ in rows}
        assert rates[fast.url] > rates[slow.url] > 0
        up.put(b"d/new", b"new", mtime=T0 + 10**9)
        up.commit()
        (tmp_path / "other/tree/d/new").write_bytes(b"new")
        down.synced()
        assert len(slow.requests) == 1, "what is known is not measured again"


def test_a_mirror_that_is_silent_holds_up_for_seconds(place: Site, tmp_path: Path) -> None:
    with silent() as nobody, nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        up.change(mirrors=(f"http://{nobody}/tree", f"{other.url}/tree"))
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)


def test_blocks_come_from_the_upstream_and_its_mirrors_at_once(place: Site, tmp_path: Path) -> None:
    content = os.urandom(40 << 20)
    slowly = "limit_rate 4m;"
    (tmp_path / "other").mkdir()
    with (
        nginx(tmp_path / "other", location=slowly) as other,
        nginx(place.folder / "trees", location=slowly) as web,
    ):
        up = place.upstream(mirrors=(f"{other.url}/tree",), block_index=1 << 20)
        up.change(content_urls=(f"{web.url}/{up.name}",))
        up.put(b"image", content)
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        ranges = [line.split('"')[1] for line in (*other.requests, *web.requests)]
        assert sorted(ranges) == sorted(
            f"bytes={at}-{at + (8 << 20) - 1}" for at in range(0, len(content), 8 << 20)
        )
        assert other.requests
        own = (f"{web.url}/{up.name}",)
        before = len(other.requests)
        place.downstream(up, mirrors="auto", content_urls=own).synced()
        assert len(other.requests) == before, "those of client.toml come first"
