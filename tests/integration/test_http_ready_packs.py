"""What many downstreams ask for is sent as it lies on the disk: no git starts for it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from huai_client.metadata.git.protocol import encode_request, pack_of
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from huai_server.store.steps import list_steps
from tests.support.committing import NAME, Upstream
from tests.support.http_fixtures import ENVIRONMENT, SECONDS, CountingGit, Server, git, running

TYPE = {"Content-Type": "application/x-git-upload-pack-request"}
FILES = 900


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """A module with a commit."""
    made = Upstream(tmp_path / "up")
    for number in range(FILES):
        made.write(f"d{number % 7}/f{number}", str(number), mtime=1_600_000_000 + number)
    made.commit()
    return made


@pytest.fixture
def counting(tmp_path: Path) -> CountingGit:
    return CountingGit(tmp_path)


@pytest.fixture
def server(tmp_path: Path, upstream: Upstream, counting: CountingGit) -> Iterator[Server]:
    with running(served(tmp_path, upstream), counting.folder) as started:
        yield started


def served(folder: Path, upstream: Upstream) -> Path:
    """A folder to serve `upstream` from."""
    made = folder / "served"
    made.mkdir()
    (made / f"{NAME}.git").symlink_to(upstream.places.repository)
    return made


def change(upstream: Upstream, *numbers: int) -> str:
    """Change some files, move a directory, commit; the new commit."""
    for number in numbers:
        upstream.write(f"d{number % 7}/f{number}", f"new {number}")
    old, new = sorted(upstream.tree.glob("x*")) or [upstream.tree / "d0"], upstream.tree / "x"
    old[0].rename(new.with_name(f"x{numbers[0]}"))
    return upstream.commit().head.commit


def fetch(server: Server, folder: Path) -> str:
    """Bring a downstream's metadata up to date, as a sync does; git finds nothing wrong."""
    repository = Repository(folder)
    commit = repository.fetch(MetadataUrl(f"{server.url}/git/{NAME}.git")).id
    repository.keep([commit])
    said = git("-C", folder, "fsck", "--full", "--strict", "--no-dangling")
    assert not said.replace("notice: HEAD points to an unborn branch (main)", "")
    return commit


def ask(server: Server, want: str, have: str | None = None) -> bytes:
    """The pack of an answer to what huai-client asks."""
    haves = [have] if have else []
    body = encode_request(want, haves, haves)
    address = f"{server.url}/git/{NAME}.git/git-upload-pack"
    answer = httpx.post(address, content=body, headers=TYPE, timeout=SECONDS)
    assert answer.status_code == 200
    stream = iter([answer.content])
    return b"".join(pack_of(lambda _: next(stream, b""), "the answer"))


def test_a_first_fetch_and_each_next_one_start_no_git(
    upstream: Upstream, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    for round_ in range(1, 4):
        head = upstream.head.commit
        for name in ("one", "two"):
            assert fetch(server, tmp_path / name) == head
        assert fetch(server, tmp_path / f"new-{round_}") == head
        assert counting.starts() == round_, "the advert of each commit"
        change(upstream, round_, 10 * round_, 200 + round_)


def test_what_is_sent_is_what_git_would_send_and_no_longer(
    upstream: Upstream, server: Server
) -> None:
    old = upstream.head.commit
    new = change(upstream, *range(0, FILES, 90))
    options = ("--revs", "--thin", "--shallow", "--stdout", "--quiet")
    for pack, wanted in (
        (ask(server, new, old), f"{new}\n^{old}\n"),
        (ask(server, new), f"--shallow {new}\n{new}\n"),
    ):
        command = ["git", "-C", str(upstream.places.repository), "pack-objects", *options]
        done = subprocess.run(
            command, input=wanted.encode(), env=ENVIRONMENT, capture_output=True, check=True
        )
        assert pack[:12] == done.stdout[:12], "as many objects"
        assert len(pack) < 1.05 * len(done.stdout)


def test_what_was_before_comes_back(upstream: Upstream, server: Server, tmp_path: Path) -> None:
    assert fetch(server, tmp_path / "one")
    (upstream.tree / "d3").rename(upstream.tree / "away")
    upstream.commit()
    assert fetch(server, tmp_path / "one")
    (upstream.tree / "away").rename(upstream.tree / "d3")
    head = upstream.commit().head.commit
    assert fetch(server, tmp_path / "one") == head


def test_git_answers_what_no_file_answers(
    upstream: Upstream, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    first = upstream.head.commit
    fetch(server, tmp_path / "late")
    second, third = change(upstream, 1), change(upstream, 2)
    for want, have in ((third, first), (second, None), (third, third)):
        before = counting.starts()
        ask(server, want, have)
        assert counting.starts() == before + 1
    assert fetch(server, tmp_path / "late") == third
    loosen(upstream.places.repository)
    fourth = change(upstream, 3)
    assert [path.stem for path in list_steps(upstream.places.repository)] == [f"{second}-{third}"]
    assert fetch(server, tmp_path / "late") == fourth
    assert fetch(server, tmp_path / "new") == fourth


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_git_itself_fetches_what_it_likes(
    upstream: Upstream, server: Server, tmp_path: Path, protocol: int
) -> None:
    url, clone = f"{server.url}/git/{NAME}.git", tmp_path / "clone"
    options = ("--quiet", "--bare", "--depth", "1")
    git("clone", *options, url, clone, protocol=protocol)
    new = change(upstream, 4, 5)
    git("-C", clone, "fetch", *options[:1], *options[2:], url, "+main:main", protocol=protocol)
    git("-C", clone, "fsck", "--full", "--strict")
    assert git("-C", clone, "rev-parse", "main") == new
    git("-C", clone, "fetch", "--quiet", "--unshallow", url, "+main:main", protocol=protocol)
    assert git("-C", clone, "rev-list", "--count", "main") == "2"


def test_a_file_that_is_cut_short_drops_the_connection(upstream: Upstream, server: Server) -> None:
    old = upstream.head.commit
    new = change(upstream, 6)
    (step,) = list_steps(upstream.places.repository)
    step.chmod(0o644)
    body = encode_request(new, [old], [old])
    address = f"{server.url}/git/{NAME}.git/git-upload-pack"
    whole = httpx.post(address, content=body, headers=TYPE, timeout=SECONDS)
    # What it was when it was opened is what the answer promises.
    assert int(whole.headers["content-length"]) == len(whole.content)
    os.truncate(step, 100)
    short = httpx.post(address, content=body, headers=TYPE, timeout=SECONDS)
    assert int(short.headers["content-length"]) == len(short.content) < len(whole.content)
    assert upstream.check().faults == (f"{step}: does not match its checksum",)


def test_a_spool_folder_that_is_full_leaves_it_to_git(
    upstream: Upstream, tmp_path: Path, counting: CountingGit
) -> None:
    with running(served(tmp_path, upstream), counting.folder, spool_bytes=100) as server:
        for number in (1, 2):
            assert fetch(server, tmp_path / str(number)) == upstream.head.commit
    assert counting.starts() == 2, "the advert, and a pack that both share"


def loosen(repository: Path) -> None:
    """All objects as files of their own."""
    packs = repository / "objects" / "pack"
    found = [path.read_bytes() for path in packs.glob("*.pack")]
    for path in packs.iterdir():
        path.unlink()
    for data in found:
        git("-C", repository, "unpack-objects", "-q", stdin=data)
