"""`serve` reads static files from the repository, and rsync copies them elsewhere."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from huai_client.metadata.failover import Failover
from huai_client.metadata.http import IncompleteCopyError, MetadataUrl
from huai_client.metadata.known_heads import KnownHeads
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from huai_client.state.upstreams import UpstreamHealth
from huai_schema.errors import ExitCode, HuaiError
from tests.support.committing import NAME
from tests.support.http_fixtures import CountingGit, Server, git, running
from tests.support.nginx import nginx
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
        pack = httpx.get(address(server, f"static/{step.file.pack_name}"))
        assert len(pack.content) == step.file.size
        assert "immutable" in pack.headers["cache-control"]


def test_the_head_of_a_pack_reads_none_of_it(server: Server, publisher: Publisher) -> None:
    name = f"static/packs/{'1' * 64}.pack"
    (publisher.upstream.places.repository / name).touch()
    os.truncate(publisher.upstream.places.repository / name, 1 << 40)
    request = f"HEAD /git/{NAME}.git/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert b"content-length: %d\r\n" % (1 << 40) in server.exchange(request.encode())


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


COMMITS = 50
SECONDS = 60
HEADS = "/git/*/static/head"
PLAIN = (("publisher/", "copy/"),)
HEADS_LAST = (
    ("--include=*/", f"--include={HEADS}", "--exclude=*", "publisher/", "heads/"),
    (f"--exclude={HEADS}", "--exclude=tmp_huai_*", "--delete-after", "publisher/", "copy/"),
    ("heads/", "copy/"),
)
"""The runs of rsync that SERVE.md shows."""


class Copied:
    """A publisher, the copy of its folder that a web server serves, and a client of that."""

    def __init__(self, folder: Path) -> None:
        self.publisher = Publisher(folder)
        self.publisher.folder.rename(folder / "publisher")
        self.publisher.folder = folder / "publisher"
        (folder / "copy").mkdir()
        self.folder = folder
        self.url = ""
        self.health = UpstreamHealth(None)
        for number in range(50):
            self.publisher.upstream.write(f"d{number % 7}/f{number}", str(number))
        self.publisher.change(0)
        self.publisher.publish()

    def copy(self, runs: tuple[tuple[str, ...], ...]) -> None:
        """Run rsync so often, with such arguments."""
        for arguments in runs:
            # 24: a draft of the publisher vanished.
            done = subprocess.run(
                ["rsync", "-a", *arguments], cwd=self.folder, timeout=SECONDS, check=False
            )
            assert done.returncode in (0, 24)

    def fetch(self, client: str) -> str:
        """Bring the metadata of a client up to date, with short pauses."""
        repository = Repository(self.folder / client)
        upstreams = Failover(
            [MetadataUrl.of(self.url, NAME)], self.health, pause=lambda _: time.sleep(0.01)
        )
        commit = upstreams.first_answer(repository.fetch).id
        repository.keep([commit])
        return commit


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Copied]:
    copied = Copied(tmp_path)
    copied.copy(HEADS_LAST)
    with nginx(tmp_path / "copy") as web:
        copied.url = web.url
        yield copied


def head_alone(copied: Copied) -> None:
    """As rsync leaves a copy in the middle of its run: it sends `head` before `packs`."""
    copied.publisher.change(1)
    copied.publisher.publish()
    head = copied.publisher.files / "static/head"
    shutil.copy(head, copied.folder / "copy" / head.relative_to(copied.publisher.folder))


@pytest.mark.parametrize("first", [False, True])
def test_a_head_whose_packs_are_missing_yet_is_asked_for_again(
    copied: Copied, *, first: bool
) -> None:
    """The failure passes: the configuration is right, and the state before it stays."""
    before = None if first else copied.fetch("client")
    head_alone(copied)
    with pytest.raises(IncompleteCopyError, match="static/head names static/packs/") as caught:
        copied.fetch("client")
    assert caught.value.exit_code == ExitCode.NETWORK
    assert Repository(copied.folder / "client").fetched == before
    assert not copied.health.failing()  # other modules of the same server are not avoided
    repository = Repository(copied.folder / "client")
    upstreams = Failover(
        [MetadataUrl.of(copied.url, NAME)], copied.health, pause=lambda _: copied.copy(PLAIN)
    )
    assert upstreams.first_answer(repository.fetch).id == copied.publisher.upstream.head.commit


def test_two_heads_of_one_second_have_different_times(copied: Copied) -> None:
    """Else nginx calls them the same (its ETag is second and size), and so does rsync."""
    seconds = []
    for number in range(3):
        copied.publisher.change(number)
        copied.publisher.publish()
        seconds.append(int((copied.publisher.files / "static/head").stat().st_mtime))
    assert len(set(seconds)) == len(seconds)


@pytest.mark.parametrize("runs", [PLAIN, HEADS_LAST])
def test_a_client_polls_while_each_commit_is_copied(
    copied: Copied, runs: tuple[tuple[str, ...], ...]
) -> None:
    """Copied as the page says, nothing ever fails; by one rsync, only what passes."""
    ended = threading.Event()

    def publish() -> None:
        for number in range(COMMITS):
            copied.publisher.change(number)
            copied.publisher.publish()

    def copy() -> None:
        while publishing.is_alive():
            copied.copy(runs)
        copied.copy(runs)
        ended.set()

    publishing, copying = threading.Thread(target=publish), threading.Thread(target=copy)
    publishing.start()
    copying.start()
    failures: list[HuaiError] = []
    client = 0
    while not ended.is_set():
        client += 1
        try:
            copied.fetch("old")
            copied.fetch(f"new-{client}")
        except HuaiError as error:
            failures.append(error)
    copying.join(SECONDS)
    publishing.join(SECONDS)
    newest = copied.publisher.upstream.head.commit
    assert copied.fetch("old") == copied.fetch("new") == newest
    assert all(isinstance(error, IncompleteCopyError) for error in failures), failures
    assert not failures or runs is PLAIN
