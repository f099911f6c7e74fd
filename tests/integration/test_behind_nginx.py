"""`serve` behind a web server, as docs/SERVE.md has it: limits, and whose address counts."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.committing import ENVIRONMENT, NAME, SECONDS, run_server
from tests.support.nginx import nginx
from tests.support.prepared import CLIENT, ran
from tests.support.serving import Serving, serving

FORGED, OTHER = "198.51.100.9", "127.0.0.2"
"""The second one is the address of a client, not of a trusted proxy."""
ZONE = """
map $uri $huai_limited { default $binary_remote_addr; ~^/content/ ""; }
limit_req_zone $huai_limited zone=huai:1m rate=1r/m;
"""
LIMIT = "limit_req zone=huai nodelay; limit_req_status 429; error_page 429 = @busy;"
BUSY = "} location @busy { add_header Retry-After 61 always; return 429;"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "tree").mkdir()
    for number in range(5):
        (folder / f"tree/{number}").write_text("content")
    root = folder / "state"
    run_server(root, "add", NAME, str(folder / "tree"), "--serve-content")
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f"[listen]\naccess_log = true\n{text}")
    assert run_server(root, "commit", NAME).returncode == 0
    with serving(root) as server:
        yield server


def location(server: Serving) -> str:
    forwarded = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering off;"
    return f'proxy_pass {server.url}; proxy_set_header Connection ""; {forwarded}'


def test_a_client_that_has_to_wait_for_long_does_not_ask_again(
    server: Serving, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir()
    with nginx(tmp_path, location=f"{location(server)} {LIMIT} {BUSY}", outside=ZONE) as proxy:
        content = f"{proxy.url}/content/{NAME}"
        root = ("--root", str(tmp_path / "client"))
        added = ("add", NAME, proxy.url, str(tmp_path / "copy"), "--content-url", content)
        assert ran(CLIENT, [*root, *added], ENVIRONMENT, SECONDS).returncode == 0
        done = ran(CLIENT, [*root, "sync", NAME], ENVIRONMENT, SECONDS)
        statuses = [line.split()[1] for line in proxy.requests if "/git/" in line]
        assert [httpx.get(f"{content}/{name}").status_code for name in range(5)] == [200] * 5
    assert statuses == ["200", "429"]  # `add` looks whether the upstream has it
    assert (done.returncode, "HTTP 429" in done.stderr) == (10, True)


def test_a_forged_address_is_not_believed(server: Serving, tmp_path: Path) -> None:
    def logged(url: str, word: str) -> str:
        transport = httpx.HTTPTransport(local_address=OTHER)
        with httpx.Client(transport=transport, headers={"X-Forwarded-For": FORGED}) as client:
            assert client.get(f"{url}/healthz?{word}").status_code == 200
        server.wait_until(lambda: word in server.log.read_text())
        (line,) = [line for line in server.log.read_text().splitlines() if word in line]
        return line.split()[1].rpartition(":")[0]

    with nginx(tmp_path, location=location(server)) as proxy:
        assert logged(proxy.url, "behind") == OTHER
    assert logged(server.url, "alone") == OTHER
