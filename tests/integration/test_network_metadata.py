"""Metadata upstreams that are down, silent, slow, busy or behind, and others that stand in."""

import json
import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from huai_schema import __version__
from tests.integration.test_sync_idle import loaded
from tests.support.certificate import make_certificate
from tests.support.counting_proxy import counting
from tests.support.local_trees import fingerprint
from tests.support.upstream import Downstream, Site, Upstream, assert_equal, serving
from tests.support.weak_network import Weakness, busy, silent, trickling, tunnel, unused_port, weak


@pytest.fixture(name="up")
def upstream_with_files(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"folder", 5)
    up.commit()
    return up


@contextmanager
def replica(up: Upstream, folder: Path) -> Iterator[str]:
    """The address of another server, which has the metadata as they are now and stay."""
    shutil.copytree(up.root, folder / "replica", ignore=shutil.ignore_patterns("*lock*"))
    with serving(folder / "replica") as (_, url):
        yield url


def remembered(down: Downstream) -> list[str]:
    """The upstreams that the client knows to have failed."""
    path = down.root / "upstreams.json"
    return [row[0] for row in json.loads(path.read_text())] if path.exists() else []


def test_one_that_is_down(place: Site, up: Upstream) -> None:
    with unused_port() as dead:
        down = place.downstream(up, url=(f"http://{dead}", place.url))
        ended = down.sync()
        assert ended.code == 0, ended
        assert f"{dead}/git/{up.name}.git: Failed to connect" in ended.err
        assert_equal(up, down)
        assert remembered(down) == [f"http://{dead}"]
        again = down.sync()
        assert again.code == 0
        assert dead not in again.err  # it was not asked


def test_every_request_says_which_program_asks(place: Site, up: Upstream) -> None:
    with counting(place.url) as counted:
        down = place.downstream(up, url=counted.url)
        for command in (("sync", up.name), ("sync", up.name), ("modules", counted.url)):
            assert down.run(*command).code == 0
    kinds = (b"GET /git/", b"GET /api/v1/modules")
    assert all(any(each.startswith(kind) for each in counted.requests) for kind in kinds)
    assert counted.agents == [f"huai-client/{__version__}".encode()] * len(counted.requests)


def test_one_that_is_behind(place: Site, up: Upstream, tmp_path: Path) -> None:
    down = place.downstream(up)
    with replica(up, tmp_path) as stale, counting(stale) as counted:
        up.put(b"new", b"1")
        up.commit()
        down.synced()
        down.configure(url=(counted.url, place.url))
        ended = down.sync()
        assert ended.code == 0, ended
        assert f"{counted.url}/git/{up.name}.git: has nothing newer" in ended.err
        requests = len(counted.requests)
        assert requests >= 1
        assert loaded(down) == "[]\n"
        assert len(counted.requests) == requests, "it makes no poll dear"
        up.put(b"newer", b"1")
        up.commit()
        assert down.synced()["serial"] == 3
        assert_equal(up, down)


def test_all_are_behind(place: Site, up: Upstream, tmp_path: Path) -> None:
    down = place.downstream(up)
    with replica(up, tmp_path) as stale, unused_port() as dead:
        up.put(b"new", b"1")
        up.commit()
        down.synced()
        before = fingerprint(down.dest), down.state
        down.configure(url=stale)
        assert down.sync().code == 46
        down.configure(url=(stale, f"http://{dead}"))
        assert down.sync().code == 46
        down.configure(url=(f"http://{dead}", stale))
        ended = down.sync()
        assert ended.code == 10
        assert "nothing newer than the local metadata" in ended.err
        assert (fingerprint(down.dest), down.state) == before
        down.configure(url=(stale, place.url))
        assert down.sync("--accept-rollback").code == 0
        assert down.state.serial == 1
        assert not (down.dest / "new").exists()


def test_an_upstream_that_says_when_to_come_back(place: Site, up: Upstream) -> None:
    with busy(place.url) as weak:
        down = place.downstream(up, url=weak.url)
        weak.refusals, weak.retry_after = 1, "2"
        ended = down.sync()
        assert ended.code == 0, ended
        assert weak.requests > 1
        assert_equal(up, down)
    with busy(place.url) as weak:
        down = place.downstream(up, url=weak.url)
        weak.refusals, weak.retry_after = 9, "soon"
        assert down.sync().code == 10
        assert weak.requests == 3


def test_the_words_of_an_upstream_are_escaped_for_a_terminal(place: Site, up: Upstream) -> None:
    with busy(place.url) as weak:
        down = place.downstream(up, url=weak.url)
        weak.refusals, weak.retry_after, weak.reason = 9, "99", "\x1b[31mred\x07 \x9b" + "x" * 999
        ended = down.sync()
        assert ended.code == 10
        assert r"HTTP 503 \x1b[31mred\x07 \x9bxxx" in ended.err
        assert len(ended.err) < 1000
        assert "\x1b" not in down.run("status").out


@pytest.mark.parametrize(
    ("weakness", "reason"),
    [(silent, "no response in time"), (lambda url: trickling(url, 40), "sends too slowly")],
    ids=["silent", "slow"],
)
def test_one_that_gives_way(place: Site, up: Upstream, weakness: Any, reason: str) -> None:
    with weakness(*([] if weakness is silent else [place.url])) as first:
        down = place.downstream(up, url=(f"http://{first}", place.url), timeout=1)
        ended = down.sync()
        assert ended.code == 0, ended
        assert reason in ended.err


@pytest.mark.parametrize("stalls", [False, True])
def test_metadata_that_break_off(place: Site, up: Upstream, *, stalls: bool) -> None:
    up.many(b"more", 300)
    up.commit()
    broken = Weakness(most=2000, stalls=stalls)
    with weak(place.url, broken) as bad:
        down = place.downstream(up, url=(f"http://{bad}", place.url), timeout=1)
        ended = down.sync()
        assert ended.code == 0, ended
        assert bad in ended.err
    assert_equal(up, down)


@pytest.fixture(name="certificate")
def certificate_and_key(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that is its own authority, and its key, in one file."""
    certificate, key = make_certificate(tmp_path)
    path = tmp_path / "both.pem"
    path.write_text(key.read_text() + certificate.read_text())
    return path


def test_tls(place: Site, up: Upstream, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    trusting = {"SSL_CERT_FILE": str(certificate.with_name("certificate.pem"))}
    with weak(place.url, Weakness(tls=context)) as good:
        down = place.downstream(up, url=f"https://{good}")
        doubtful = down.process("sync", down.name)
        assert doubtful.code == 10
        assert doubtful.err.count("self-signed") == 1, "another try would be told"
        assert down.process("sync", down.name, environment=trusting).code == 0
    with weak(place.url, Weakness(tls=context, pace=40)) as slow:
        down.configure(url=(f"https://{slow}", place.url), timeout=1)
        crawling = down.process("sync", down.name, environment=trusting)
    assert crawling.code == 0
    assert "sends too slowly" in crawling.err


def test_a_proxy(place: Site, up: Upstream, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with weak(place.url, Weakness(tls=context)) as good, tunnel() as (proxy, heads):
        down = place.downstream(up, url=f"https://{good}")
        through = {
            "SSL_CERT_FILE": str(certificate.with_name("certificate.pem")),
            "https_proxy": f"http://me:secret@{proxy}",
        }
        ended = down.process("sync", down.name, environment=through)
    assert ended.code == 0, ended
    login = b"\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"
    assert len(heads) == 1
    assert all(head.startswith(f"CONNECT {good} HTTP/1.1\r\n".encode()) for head in heads)
    assert all(login in head for head in heads)
    with counting(place.url) as counted:
        down.configure(url="http://upstream.invalid:1")
        proxied = {"http_proxy": counted.url}
        assert down.process("sync", down.name, environment=proxied).code == 0
    assert counted.requests[0].startswith(b"GET http://upstream.invalid:1/git/")


def test_add_writes_all_urls_and_status_shows_who_fails(
    place: Site, up: Upstream, tmp_path: Path
) -> None:
    down = place.downstream(up)
    with unused_port() as dead:
        (tmp_path / "d").mkdir()
        assert down.run("remove", up.name).code == 0
        added = down.run(
            "add", up.name, f"http://{dead}", str(tmp_path / "d"), "--other-url", place.url
        )
        assert added.code == 0, added
        assert "upstream http" not in down.run("status").out
        assert down.sync().code == 0
        assert f"upstream http://{dead}: fails since" in down.run("status").out
    failing = down.run("status", "--json").events("failing")
    assert [event["service"] for event in failing] == [f"http://{dead}"]
