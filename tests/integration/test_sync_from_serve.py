"""A mirror of one program: `huai-server serve` serves metadata and content."""

import os
from pathlib import Path

from tests.support.upstream import T0, Site, Upstream, assert_equal, site

ODD = (b"\xff\xfe", b"a%2fb", b"line\nfeed", b"sp ace+?#&", b"back\\slash", b"\xc3\xa9", b"n" * 255)
LARGE = 40 << 20
"""More than the smallest file with a block index."""


def mirror(place: Site) -> Upstream:
    """A module that names `serve` as the place of its content."""
    up = place.upstream()
    up.change(content_urls=(f"{place.url}/content/{up.name}",), serve_content=True)
    up.put(b"large", os.urandom(LARGE))
    up.put(b"empty")
    up.put(b"beat", b"0")
    up.many(b"d", 300)
    for name in ODD:
        up.put(b"d/deep/" + name, name)
    up.at(b"link").symlink_to("d/0")
    return up


def test_everything_comes_from_one_server(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = mirror(place)
        down = place.synced_downstream(up)
        assert_equal(up, down)
        up.put(b"d/0", b"changed", mtime=T0 + 10**9)
        up.put(b"d/new", b"new")
        up.at(b"d/1").unlink()
        up.commit()
        down.synced()
        assert_equal(up, down)


def test_the_server_of_the_metadata_states_that_it_has_the_content(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = mirror(place)
        up.change(content_urls=(), serve_content=True)
        up.commit()
        down = place.synced_downstream(up)
        assert_equal(up, down)
        up.change(content_urls=(), serve_content="large")
        up.put(b"d/new", b"new")
        up.commit()
        result = down.sync()
        assert result.code == 40
        assert "names no content URL" in result.err


def test_a_file_that_is_not_as_committed_waits_for_the_next_commit(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = mirror(place)
        up.commit()
        up.put(b"d/0", b"other now", mtime=T0 + 10**9)
        down = place.downstream(up)
        assert down.sync().code == 24
        assert not down.dest.joinpath("d/0").exists()
        up.commit()
        down.synced()
        assert_equal(up, down)


def test_a_volatile_file_comes_as_it_is(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = mirror(place)
        up.change(volatile=("/beat",))
        up.commit()
        up.put(b"beat", b"12", mtime=T0 + 10**9)
        down = place.downstream(up)
        down.synced()
        assert down.dest.joinpath("beat").read_bytes() == b"12"


def test_a_module_that_hands_out_nothing_is_refused(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = mirror(place)
        up.change(serve_content=False)
        up.commit()
        down = place.downstream(up)
        assert down.sync().code != 0
        up.change(serve_content=True)
        down.synced()
        assert_equal(up, down)
