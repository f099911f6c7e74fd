"""What many downstreams ask for is sent as it lies on the disk: no git starts for it."""

import gzip
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from huai_client.metadata.git.protocol import encode_request, pack_of
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from huai_schema.git.pktline import FLUSH_PACKET, packet, split
from huai_server.store.steps import list_steps
from tests.support.answering import QuietHandler, answering
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
    stream = iter([answer(server, encode_request(want, haves, haves))])
    return b"".join(pack_of(lambda _: next(stream, b""), "the answer"))


def answer(server: Server, body: bytes) -> bytes:
    """What is said to a request."""
    got = post(server, body)
    assert got.status_code == 200
    return got.content


def post(server: Server, body: bytes) -> httpx.Response:
    """The answer to a request, whatever it is."""
    address = f"{server.url}/git/{NAME}.git/git-upload-pack"
    return httpx.post(address, content=body, headers=TYPE, timeout=SECONDS)


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


def test_whoever_is_further_behind_gets_a_file_as_well(
    upstream: Upstream, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    late, new = [], upstream.head.commit
    for number in range(1, 6):
        late.append(tmp_path / f"late-{number}")
        assert fetch(server, late[-1]) == new
        shutil.copytree(late[-1], tmp_path / f"later-{number}")
        new = change(upstream, number, 200 + number, 7)
    starts = counting.starts()
    for folder in [*late, *tmp_path.glob("later-*")]:
        assert fetch(server, folder) == new
    assert counting.starts() == starts + 1, "the advert"
    head = change(upstream, 10)
    for folder in late:
        assert fetch(server, folder) == head
    # What it was interrupted on its way to is there as well.
    both = encode_request(head, [new, "1" * 40], [new])
    assert answer(server, both).startswith(packet(f"shallow {head}".encode()) + b"0000")
    assert counting.starts() == starts + 2


def test_stock_git_reads_these_files(
    upstream: Upstream, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    clone, main = tmp_path / "clone", "+main:main"
    with plain_server(f"{server.url}/git/{NAME}.git") as url:
        git("clone", "--quiet", "--bare", "--depth", "1", url, clone, protocol=0)
        new = [change(upstream, number, 300 + number, 7) for number in range(1, 4)][-1]
        asked = counting.starts()
        git("-C", clone, "fetch", "--quiet", "--depth", "1", url, main, protocol=0)
    # The advert, and a first question for the boundary, which is no fetch yet.
    assert counting.starts() == asked + 2
    assert git("-C", clone, "rev-parse", "main") == new
    git("-C", clone, "fsck", "--full", "--strict")
    assert git("-C", clone, "ls-tree", "-rt", "main") == upstream.git("ls-tree", "-rt", new)


def plain_server(url: str) -> AbstractContextManager[str]:
    """The same repository from a server that offers no more than huai-client makes use of."""
    offered = b"side-band-64k thin-pack ofs-delta no-progress shallow"

    class Handler(QuietHandler):
        """Passes everything on."""

        def do_GET(self) -> None:
            got = httpx.get(f"{url}{self.path}", timeout=SECONDS)
            self._answer(got, b"".join(map(self._fewer, split(got.content))))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            got = httpx.post(f"{url}{self.path}", content=body, headers=TYPE, timeout=SECONDS)
            self._answer(got, got.content)

        def _fewer(self, line: bytes | int) -> bytes:
            if isinstance(line, int):
                return FLUSH_PACKET
            ref, nul, _ = line.partition(b"\0")
            return packet(ref + nul + offered + b"\n" if nul else line)

        def _answer(self, got: httpx.Response, body: bytes) -> None:
            self.send_response(got.status_code)
            self.send_header("Content-Type", got.headers["Content-Type"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return answering(Handler)


def test_git_answers_what_is_asked_otherwise(
    upstream: Upstream, server: Server, counting: CountingGit
) -> None:
    first = upstream.head.commit
    second, third = change(upstream, 1), change(upstream, 2)
    usual = encode_request(third, [first], [first])
    want = packet(f"want {second}\n".encode())
    unusual = [
        encode_request(third, ["1" * 40], []),
        usual.replace(packet(b"deepen 1"), b""),
        usual.replace(packet(b"deepen 1"), packet(b"deepen 2")),
        usual.replace(packet(b"deepen 1"), want + packet(b"deepen 1")),
    ]
    for body in unusual:
        before = counting.starts()
        assert b"PACK" in answer(server, body)
        assert counting.starts() == before + 1
    before = counting.starts()
    body = usual.replace(packet(b"deepen 1"), packet(b"filter blob:none"))
    assert post(server, body).status_code == 400
    assert counting.starts() == before + 1


def test_git_answers_what_no_file_answers(
    upstream: Upstream, server: Server, counting: CountingGit, tmp_path: Path
) -> None:
    fetch(server, tmp_path / "late")
    second, third = change(upstream, 1), change(upstream, 2)
    for want, have in ((second, None), (third, "1" * 40)):
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
