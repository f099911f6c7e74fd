"""Stock git against a running server, in every protocol version."""

import os
from pathlib import Path

import pytest

from tests.support.http_fixtures import Repository, Server, git


class Client:
    """Stock git that speaks one version of the protocol, and its clone."""

    def __init__(self, server: Server, version: int, clone: Path) -> None:
        self.url = f"{server.url}/git/m.git"
        self._version = version
        self.path = clone

    def run(self, *arguments: str | Path) -> str:
        return git(*arguments, protocol=self._version)

    def clone(self, *options: str, url: str = "") -> None:
        self.run("clone", "--quiet", "--bare", *options, url or self.url, self.path)

    def inside(self, *arguments: str | Path, stdin: bytes = b"") -> str:
        """Run git in the clone."""
        return git("-C", self.path, *arguments, stdin=stdin, protocol=self._version)

    def listed_main(self, url: str = "") -> str:
        """Return the commit that the server lists for the branch."""
        return self.run("ls-remote", url or self.url, "main").split()[0]


@pytest.fixture(params=[0, 2])
def client(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Client:
    return Client(server, request.param, tmp_path / "clone")


@pytest.mark.parametrize("client", [0, 1, 2], indirect=True)
def test_clone_and_fetch_what_came_since(repository: Repository, client: Client) -> None:
    client.clone()
    assert client.inside("rev-parse", "main") == repository.head()
    newer = repository.commit(b"second")
    client.inside("fetch", "--quiet", client.url, "main")
    assert client.inside("rev-parse", "FETCH_HEAD") == newer
    client.inside("fsck", "--strict")


def test_the_branch_is_all_that_is_advertised(repository: Repository, client: Client) -> None:
    for name in ("huai/keep/1", "heads/other", "heads/main2"):
        git("-C", repository.path, "update-ref", f"refs/{name}", "main")
    head = repository.head()
    assert client.run("ls-remote", client.url).split() == [head, "HEAD", head, "refs/heads/main"]
    git("-C", repository.path, "pack-refs", "--all")
    assert client.listed_main() == head
    newer = repository.commit(b"second")
    assert client.listed_main() == newer
    git("-C", repository.path, "pack-refs", "--all")
    assert client.listed_main() == newer


def test_depth_one_brings_one_commit(repository: Repository, client: Client) -> None:
    repository.commit(b"second")
    client.clone("--depth=1")
    assert client.inside("rev-list", "--count", "main") == "1"


def test_a_clone_without_blobs(repository: Repository, client: Client, tmp_path: Path) -> None:
    client.clone("--filter=blob:none")
    absent = client.inside("rev-list", "--objects", "--missing=print", "main").splitlines()
    assert any(line.startswith("?") for line in absent)
    assert client.inside("rev-parse", "main") == repository.head()
    with pytest.raises(AssertionError, match="not supported"):  # it costs more than a whole clone
        client.run("clone", "--bare", "--filter=blob:limit=1k", client.url, tmp_path / "other")


@pytest.mark.parametrize("haves", [0, 200, 4000])
def test_long_negotiations(repository: Repository, client: Client, haves: int) -> None:
    # 200 commits are a gzip body, 4000 one beyond what is held in memory, sent in chunks.
    old = repository.head()
    repository.commit(b"between two requests of a fetch")
    client.run("init", "--quiet", "--bare", client.path)
    lines = "".join(
        f"commit refs/heads/own{number % 2}\ncommitter a <a@b> {number} +0000\ndata 1\nx\n"
        for number in range(haves)
    )
    client.inside("fast-import", "--quiet", stdin=lines.encode())
    for name in (old, "main"):
        client.inside("-c", "http.postBuffer=65536", "fetch", "--quiet", client.url, name)
        newest = old if name == old else repository.head()
        assert client.inside("rev-parse", "FETCH_HEAD") == newest


def test_a_module_without_a_commit_clones_as_empty(
    repository: Repository, server: Server, client: Client
) -> None:
    empty = Repository.create(repository.path.parent, "empty")
    address = f"{server.url}/git/empty.git"
    client.clone(url=address)
    first = empty.commit(b"now")
    assert client.listed_main(address) == first


def test_a_repository_of_another_user(repository: Repository, server: Server) -> None:
    url, before = f"{server.url}/git/m.git", repository.head()
    with pytest.raises(AssertionError, match="403"):
        git("-C", repository.path, "push", url, "main:other")
    assert repository.head() == before
    if os.geteuid() == 0:
        for path in [repository.path, *repository.path.rglob("*")]:
            os.chown(path, 54321, 54321)
    assert git("ls-remote", url)
