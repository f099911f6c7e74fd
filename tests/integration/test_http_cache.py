"""What a running server answers without starting a process."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_fixtures import (
    SECONDS,
    CountingGit,
    Repository,
    Server,
    git,
    ls_refs,
    packet,
    running,
)

TYPE = {"Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2"}
ADDRESS = "/git/m.git/git-upload-pack"


@pytest.fixture
def counting(tmp_path: Path) -> CountingGit:
    return CountingGit(tmp_path)


@pytest.fixture
def server(repository: Repository, counting: CountingGit) -> Iterator[Server]:
    with running(repository.path.parent, counting.folder) as started:
        yield started


@pytest.mark.parametrize(("version", "processes"), [(0, 1), (1, 1), (2, 2)])
def test_polling_costs_one_start_for_each_commit(
    repository: Repository, server: Server, counting: CountingGit, version: int, processes: int
) -> None:
    url = f"{server.url}/git/m.git"
    for round_ in (1, 2):
        head = repository.commit(b"more")
        for _ in range(4):
            assert git("ls-remote", url, "main", protocol=version).split()[0] == head
        # What protocol v2 advertises first depends on no ref, but its key does.
        assert counting.starts() == processes * round_


async def _post(client: httpx.AsyncClient, body: bytes) -> bytes:
    answer = await client.post(ADDRESS, content=body, headers=TYPE)
    assert answer.status_code == 200
    return answer.content


async def _together(url: str, bodies: list[bytes]) -> list[bytes]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=SECONDS) as client:
        return list(await asyncio.gather(*(_post(client, body) for body in bodies)))


def test_a_hundred_equal_requests_at_once_start_one_process(
    repository: Repository, server: Server, counting: CountingGit
) -> None:
    bodies = [ls_refs(b"agent=test/%d" % number) for number in range(100)]
    answers = asyncio.run(_together(server.url, bodies))
    assert len(set(answers)) == 1
    assert f"{repository.head()} refs/heads/main\n".encode() in answers[0]
    assert counting.starts() == 1


def test_equal_clones_share_one_pack(
    repository: Repository, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    clones = [
        subprocess.Popen(
            ["git", "clone", "--quiet", "--bare", f"{server.url}/git/m.git", tmp_path / str(number)]
        )
        for number in range(6)
    ]
    assert [clone.wait(SECONDS) for clone in clones] == [0] * 6
    assert git("-C", tmp_path / "5", "rev-parse", "main") == repository.head()
    assert counting.starts() == 3  # the advert, the listing, the pack


def test_a_refusal_by_git_is_not_remembered(
    server: Server, repository: Repository, counting: CountingGit
) -> None:
    body = ls_refs().replace(b"ls-refs", b"no-refs")
    starts = []
    for _ in range(2):
        answer = httpx.post(server.url + ADDRESS, content=body, headers=TYPE)
        assert (answer.status_code, answer.headers["content-type"][:10]) == (400, "text/plain")
        assert str(repository.path) not in answer.text
        starts.append(counting.starts())
    assert starts == [1, 2]


def test_without_a_cache_everything_still_works(repository: Repository, tmp_path: Path) -> None:
    with running(repository.path.parent, cache_bytes=0) as server:
        git("clone", "--quiet", "--bare", f"{server.url}/git/m.git", tmp_path / "clone")
        assert git("-C", tmp_path / "clone", "rev-parse", "main") == repository.head()


def test_no_request_spoils_the_answer_of_another(
    repository: Repository, server: Server, counting: CountingGit
) -> None:
    want = f"want {repository.head()}".encode()
    honest = want + b" side-band-64k thin-pack agent=huai-client\n"
    hostile = [
        want + b" agent=x\0 side-band-64k thin-pack",
        want + b" agent=x\tno-progress side-band-64k thin-pack",
        want + b" side-band-64k thin-pack agent=x\rallow-tip-sha1-in-want",
        want + b" agent=huai-client thin-pack",
    ]
    plain = {name: value for name, value in TYPE.items() if name != "Git-Protocol"}
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        for first in hostile:
            client.post(ADDRESS, content=packet(first) + b"0000" + packet(b"done\n"), headers=plain)
        before = counting.starts()
        body = packet(honest) + b"0000" + packet(b"done\n")
        answers = [client.post(ADDRESS, content=body, headers=plain) for _ in range(2)]
    assert counting.starts() == before + 1
    for answer in answers:
        assert answer.content.startswith(b"0008NAK\n")
        assert b"\x01PACK" in answer.content
