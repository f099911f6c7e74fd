"""Stock git against a running server, in every protocol version."""

import os
from pathlib import Path

import pytest

from tests.support.http_fixtures import Repository, Server, git

VERSIONS = pytest.mark.parametrize("version", [0, 2])


@pytest.fixture
def url(server: Server) -> str:
    return f"{server.url}/git/m.git"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_clone_and_fetch_what_came_since(
    repository: Repository, url: str, tmp_path: Path, version: int
) -> None:
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--bare", url, clone, protocol=version)
    assert git("-C", clone, "rev-parse", "main") == repository.head()
    newer = repository.commit(b"second")
    git("-C", clone, "fetch", "--quiet", url, "main", protocol=version)
    assert git("-C", clone, "rev-parse", "FETCH_HEAD") == newer
    git("-C", clone, "fsck", "--strict")


@VERSIONS
def test_the_branch_is_all_that_is_advertised(
    repository: Repository, url: str, version: int
) -> None:
    git("-C", repository.path, "update-ref", "refs/huai/keep/1", "main")
    git("-C", repository.path, "update-ref", "refs/heads/other", "main")
    git("-C", repository.path, "update-ref", "refs/heads/main2", "main")
    head = repository.head()
    listed = git("ls-remote", url, protocol=version).split()
    assert listed == [head, "HEAD", head, "refs/heads/main"]


@VERSIONS
def test_depth_one_brings_one_commit(
    repository: Repository, url: str, tmp_path: Path, version: int
) -> None:
    repository.commit(b"second")
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--bare", "--depth=1", url, clone, protocol=version)
    assert git("-C", clone, "rev-list", "--count", "main") == "1"


@VERSIONS
def test_a_clone_without_blobs(
    repository: Repository, url: str, tmp_path: Path, version: int
) -> None:
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--bare", "--filter=blob:none", url, clone, protocol=version)
    absent = git("-C", clone, "rev-list", "--objects", "--missing=print", "main").splitlines()
    assert any(line.startswith("?") for line in absent)
    assert git("-C", clone, "rev-parse", "main") == repository.head()
    with pytest.raises(AssertionError, match="not supported"):  # it costs more than a whole clone
        git("clone", "--bare", "--filter=blob:limit=1k", url, tmp_path / "other", protocol=version)


@VERSIONS
def test_a_commit_between_two_requests_does_not_break_a_fetch(
    repository: Repository, url: str, tmp_path: Path, version: int
) -> None:
    old = repository.head()
    repository.commit(b"second")
    clone = tmp_path / "clone"
    git("init", "--quiet", "--bare", clone)
    git("-C", clone, "fetch", "--quiet", url, old, protocol=version)
    assert git("-C", clone, "rev-parse", "FETCH_HEAD") == old


@VERSIONS
def test_a_packed_ref_is_followed(repository: Repository, url: str, version: int) -> None:
    git("-C", repository.path, "pack-refs", "--all")
    assert git("ls-remote", url, "main", protocol=version).split()[0] == repository.head()
    newer = repository.commit(b"second")
    assert git("ls-remote", url, "main", protocol=version).split()[0] == newer
    git("-C", repository.path, "pack-refs", "--all")
    assert git("ls-remote", url, "main", protocol=version).split()[0] == newer


@VERSIONS
@pytest.mark.parametrize("haves", [200, 4000])
def test_long_negotiations(
    repository: Repository, url: str, tmp_path: Path, version: int, haves: int
) -> None:
    # 200 commits are a gzip body, 4000 one beyond what is held in memory, sent in chunks.
    clone = tmp_path / "clone"
    git("init", "--quiet", "--bare", clone)
    lines = "".join(
        f"commit refs/heads/own{number % 2}\ncommitter a <a@b> {number} +0000\ndata 1\nx\n"
        for number in range(haves)
    )
    git("-C", clone, "fast-import", "--quiet", stdin=lines.encode())
    small = ("-c", "http.postBuffer=65536")
    git("-C", clone, *small, "fetch", "--quiet", url, "main:refs/heads/up", protocol=version)
    assert git("-C", clone, "rev-parse", "refs/heads/up") == repository.head()


@VERSIONS
def test_a_module_without_a_commit_clones_as_empty(
    repository: Repository, server: Server, tmp_path: Path, version: int
) -> None:
    empty = Repository.create(repository.path.parent, "empty")
    address = f"{server.url}/git/empty.git"
    git("clone", "--quiet", "--bare", address, tmp_path / "clone", protocol=version)
    first = empty.commit(b"now")
    assert git("ls-remote", address, "main", protocol=version).split()[0] == first


def test_a_repository_of_another_user(repository: Repository, url: str) -> None:
    if os.geteuid() == 0:
        for path in [repository.path, *repository.path.rglob("*")]:
            os.chown(path, 54321, 54321)
    assert git("ls-remote", url)


def test_pushing_is_refused(repository: Repository, url: str) -> None:
    before = repository.head()
    with pytest.raises(AssertionError, match="403"):
        git("-C", repository.path, "push", url, "main:other")
    assert repository.head() == before
