"""`serve` reads static files from the repository."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from tests.support.committing import NAME
from tests.support.http_fixtures import CountingGit, Server, git, running
from tests.support.static_files import Publisher


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    publisher = Publisher(tmp_path)
    for number in range(100):
        publisher.upstream.write(f"d{number % 7}/f{number}", str(number))
    publisher.upstream.commit()
    publisher.publish()
    return publisher


@pytest.fixture
def counting(tmp_path: Path) -> CountingGit:
    return CountingGit(tmp_path)


@pytest.fixture
def server(tmp_path: Path, publisher: Publisher, counting: CountingGit) -> Iterator[Server]:
    with running(publisher.repositories(tmp_path / "served"), counting.folder) as started:
        yield started


def address(server: Server, place: str) -> str:
    return f"{server.url}/git/{NAME}.git/{place}"


def test_a_client_asks_for_nothing_else(
    server: Server, publisher: Publisher, counting: CountingGit, tmp_path: Path
) -> None:
    url, copy = MetadataUrl(f"{server.url}/git/{NAME}.git"), tmp_path / "copy"
    for number in range(4):
        commit = Repository(copy).fetch(url).id
        assert commit == publisher.upstream.head.commit
        publisher.change(number)
        publisher.publish()
    assert counting.starts() == 0
    heads = KnownHeads(copy)
    newest = find_newest(url, heads=heads)
    assert newest.static is not None
    assert find_newest(url, heads=heads, have=newest.commit).static is None
    shutil.rmtree(publisher.upstream.places.repository / "static")
    assert find_newest(url, heads=heads).static is None


def test_what_may_be_kept_for_how_long(server: Server, publisher: Publisher) -> None:
    head = httpx.get(address(server, "static/head"))
    assert head.content == (publisher.files / "static/head").read_bytes()
    assert head.headers["cache-control"] == "no-cache"
    tag = {"If-None-Match": head.headers["etag"]}
    assert httpx.get(address(server, "static/head"), headers=tag).status_code == 304
    publisher.change(1)
    publisher.publish()
    assert httpx.get(address(server, "static/head"), headers=tag).status_code == 200
    for step in publisher.head.steps:
        pack = httpx.get(address(server, f"static/{step.file.pack}"))
        assert len(pack.content) == step.file.size
        assert "immutable" in pack.headers["cache-control"]


def test_without_them_a_hint_names_the_command(server: Server, publisher: Publisher) -> None:
    """Nor does `serve` write them, as it would after an update of huai."""
    repository = publisher.upstream.places.repository
    shutil.rmtree(repository / "static")
    answer = httpx.get(address(server, "static/head"))
    assert answer.status_code == 404
    assert "huai-server publish" in answer.text
    assert not (repository / "static").exists()
    assert git("ls-remote", f"{server.url}/git/{NAME}.git")


def test_without_git_all_else_is_served(tmp_path: Path, publisher: Publisher) -> None:
    (tmp_path / "empty").mkdir()
    script = "import sys; sys.path[:0] = sys.argv[3:]; from tests.support.http_server import main"
    command = [sys.executable, "-c", f"{script}; main()"]
    served = publisher.repositories(tmp_path / "served")
    environment = {"PATH": str(tmp_path / "empty")}
    with subprocess.Popen(
        [*command, str(served), "{}", *sys.path],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = f"http://127.0.0.1:{process.stdout.readline().split()[-1]}"
            for place in (f"/git/{NAME}.git/static/head", "/api/v1/modules", "/"):
                assert httpx.get(url + place).status_code == 200
            advert = httpx.get(f"{url}/git/{NAME}.git/info/refs?service=git-upload-pack")
            assert advert.status_code == 503
            assert "git is not installed" in advert.text
        finally:
            process.kill()
        assert "git is not installed" in process.stderr.read()


def test_nothing_else_is_there(server: Server) -> None:
    packs = ("static/packs/", "static/packs/x.pack", f"static/packs/{'0' * 64}.pack")
    for place in ("static/", "static/unused", *packs, "static/../../../x"):
        assert httpx.get(address(server, place)).status_code == 404, place
    assert httpx.post(address(server, "static/head")).status_code == 405
