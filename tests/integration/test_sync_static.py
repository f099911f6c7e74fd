"""Metadata from plain files that a real nginx serves."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from huai_client.metadata.block_indices import BlockIndexFetch
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl, UpstreamError
from huai_client.metadata.repository import Repository
from huai_client.run.options import NEVER
from huai_client.state.hosts import Hosts
from huai_native._native import Blake3
from huai_schema.codec.static_files import NOTHING, Static, StaticFile, Step
from huai_schema.errors import ExitCode, FormatError, HuaiError
from tests.support.committing import NAME, git
from tests.support.nginx import Nginx, nginx
from tests.support.static_files import Publisher, publish_to
from tests.support.upstream import Site, assert_equal


@dataclass
class Published:
    """A module, and the web server that hands its files out."""

    publisher: Publisher
    web: Nginx

    @property
    def url(self) -> MetadataUrl:
        """As a client knows it."""
        return MetadataUrl.of(self.web.url, NAME)

    def fetch(self, folder: Path) -> str:
        """Bring a downstream's metadata up to date, as a sync does; git finds nothing wrong."""
        repository = Repository(folder)
        commit = repository.fetch(self.url).id
        repository.keep([commit])
        complaints = git(folder, "fsck", "--full", "--strict", "--no-dangling").splitlines()
        assert not [line for line in complaints if not line.startswith("notice: ")], complaints
        return commit

    def requests_after(self, before: int = 0) -> list[str]:
        """Status and place of the requests after so many."""
        lines = [line.split() for line in self.web.requests[before:]]
        return [f"{line[1]} {line[-1].removeprefix(f'/git/{NAME}.git/')}" for line in lines]

    def rewrite(self, head: Static) -> None:
        """Replace the head."""
        (self.publisher.files / "static/head").write_bytes(head.encode())

    def damage(self, step: Step) -> None:
        """Change a byte in the middle of a pack."""
        path = self.publisher.files / "static" / step.file.pack_name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Published]:
    publisher = Publisher(tmp_path)
    for number in range(300):
        publisher.upstream.write(f"d{number % 7}/f{number}", str(number))
    publisher.upstream.commit()
    publisher.publish()
    with nginx(publisher.folder) as web:
        yield Published(publisher, web)


def test_one_and_eighty_commits_missed(published: Published, tmp_path: Path) -> None:
    """A head, at most two lists, and a few packs; each is asked for once, on one connection."""
    publisher = published.publisher
    publisher.change(0)
    publisher.publish()
    published.fetch(tmp_path / "old")
    for number in range(85):
        publisher.change(number, 2 * number)
        publisher.publish()
        if number == 83:
            published.fetch(tmp_path / "late")
    for name, most in (("late", 2), ("old", 24)):
        before = len(published.web.requests)
        assert published.fetch(tmp_path / name) == publisher.upstream.head.commit
        requests = published.requests_after(before)
        assert all(line.startswith("200 static/") for line in requests), requests
        assert len(requests) == len(set(requests)) <= most
        assert len(set(published.web.connections[before : before + len(requests)])) == 1
        assert (requests[0], sum("/lists/" in line for line in requests)) == (
            "200 static/head",
            2 * (name == "old"),
        )


def test_who_has_the_newest_asks_for_the_head_alone(published: Published, tmp_path: Path) -> None:
    published.fetch(tmp_path / "copy")
    before = len(published.web.requests)
    published.fetch(tmp_path / "copy")
    assert published.requests_after(before) == ["200 static/head"]


def test_a_commit_that_no_step_leads_from(published: Published, tmp_path: Path) -> None:
    """All of the newest one is taken."""
    published.fetch(tmp_path / "copy")
    published.publisher.change(1)
    shutil.rmtree(published.publisher.files)
    published.publisher.upstream.configure(keep="1m", keep_commits=1)
    published.publisher.publish()
    head = published.publisher.head
    published.rewrite(head._replace(steps=tuple(s for s in head.steps if s.old == NOTHING)))
    assert published.fetch(tmp_path / "copy") == published.publisher.upstream.head.commit


@pytest.mark.parametrize("wrong", ["damaged", "gone"])
def test_a_step_of_no_use_is_made_up_for(published: Published, tmp_path: Path, wrong: str) -> None:
    """By a pack of all."""
    publisher = published.publisher
    published.fetch(tmp_path / "copy")
    for number in range(120):
        publisher.upstream.write(f"new/{number}", os.urandom(20).hex())
    publisher.upstream.commit()
    publisher.publish()
    publisher.change(5)
    publisher.publish()
    first = next(step for step in publisher.head.steps if (step.old, step.new) == (1, 2))
    if wrong == "damaged":
        published.damage(first)
    else:
        (publisher.files / "static" / first.file.pack_name).unlink()
    assert published.fetch(tmp_path / "copy") == publisher.upstream.head.commit


def refused(published: Published, folder: Path) -> HuaiError:
    """Return the error of a fetch that records nothing, and leaves no half of a pack."""
    with pytest.raises(HuaiError) as error:
        Repository(folder).fetch(published.url)
    assert not list(folder.rglob("tmp_*"))
    assert Repository(folder).fetched is None
    return error.value


def test_heads_that_lead_nowhere(published: Published, tmp_path: Path) -> None:
    publisher, head = published.publisher, published.publisher.head
    (step,) = head.steps
    good = (publisher.files / "static" / step.file.pack_name).read_bytes()
    # As the head says, and yet no pack, or that of another commit.
    for data, commit in ((b"PACK" + bytes(40), head.commits[1]), (good, "1" * 40)):
        file = StaticFile(len(data), Blake3(data).digest())
        (publisher.files / "static" / file.pack_name).write_bytes(data)
        published.rewrite(Static({1: commit}, (Step(NOTHING, 1, file),)))
        assert isinstance(refused(published, tmp_path / "copy"), FormatError)
    published.rewrite(Static(head.commits, ()))
    assert "no way leads" in refused(published, tmp_path / "copy").message
    huge = StaticFile(10**17, bytes(32))
    published.rewrite(Static(head.commits, (Step(NOTHING, 1, huge),)))
    assert "bytes" in refused(published, tmp_path / "copy").message
    published.rewrite(head)
    assert published.fetch(tmp_path / "copy") == head.commits[1]


def test_a_chain_without_an_end_is_not_followed(published: Published, tmp_path: Path) -> None:
    """Thousands of packs that lead from one to the next are no way."""
    file = published.publisher.head.steps[0].file
    commits = {serial: f"{serial:040x}" for serial in range(1000, 0, -1)}
    steps = tuple(Step(serial - 1, serial, file) for serial in commits)
    published.rewrite(Static(commits, steps))
    before = len(published.web.requests)
    assert "no way leads" in refused(published, tmp_path / "copy").message
    assert len(published.requests_after(before)) <= 2


def test_what_is_no_head(published: Published, tmp_path: Path) -> None:
    for text in (b"", b"<html>", bytes(300_000)):
        (published.publisher.files / "static/head").write_bytes(text)
        error = refused(published, tmp_path / "copy")
        assert error.exit_code == ExitCode.UNKNOWN_MODULE, text


def test_a_malformed_head_is_named(published: Published, tmp_path: Path) -> None:
    published.fetch(tmp_path / "copy")
    for text, words in (
        (b"huai-static\t1\nnothing known\n", "head, line 2: "),
        (b"huai-static\t1\n" + bytes(1 << 20), "head: more than 262144 bytes"),
        (b"huai-static\t2\n", "version 1"),
        (b"huai-static\t1\n", "head: a commit is missing"),
    ):
        (published.publisher.files / "static/head").write_bytes(text)
        for folder in ("copy", "first"):
            with pytest.raises(FormatError, match=words):
                published.fetch(tmp_path / folder)


def test_a_run_that_was_cut_goes_on_from_there(published: Published, tmp_path: Path) -> None:
    """Complete packs are not fetched again."""
    publisher, copy = published.publisher, tmp_path / "copy"
    published.fetch(copy)
    for number in range(3):
        publisher.change(number)
        publisher.publish()
    last = publisher.files / "static" / publisher.steps(3)[-1].file.pack_name
    away = last.rename(tmp_path / "away")
    full_step = next(step for step in publisher.head.steps if step.old == NOTHING)
    pack = publisher.files / "static" / full_step.file.pack_name
    pack.rename(tmp_path / "whole")
    with pytest.raises(UpstreamError):
        Repository(copy).fetch(published.url)
    away.rename(last)
    before = len(published.web.requests)
    assert published.fetch(copy) == publisher.upstream.head.commit
    assert published.requests_after(before) == ["200 static/head", f"200 static/packs/{last.name}"]


def test_a_block_index_comes_from_there(published: Published, tmp_path: Path) -> None:
    publisher = published.publisher
    publisher.upstream.configure(block_index=128 << 10)
    content = os.urandom(300_000)
    (publisher.upstream.tree / "large").write_bytes(content)
    publisher.upstream.commit()
    publisher.publish()
    upstream = Failover([published.url], Hosts(tmp_path).health)
    indices = BlockIndexFetch(upstream, NEVER, timeout=20, on_message=pytest.fail)
    assert indices.find(len(content), Blake3(content).digest()) is not None


# ---------------------------------------------------------------- whole syncs


@pytest.fixture
def www(tmp_path: Path) -> Path:
    folder = tmp_path / "www"
    folder.mkdir()
    return folder


@pytest.fixture
def web(www: Path) -> Iterator[Nginx]:
    with nginx(www) as running:
        yield running


def test_nothing_new_is_one_request_without_a_body(place: Site, www: Path, web: Nginx) -> None:
    """Several modules share one folder."""
    for _ in range(2):
        up = place.upstream()
        up.many(b"d", 40)
        up.commit()
        publish_to(www, up)
        down = place.downstream(up, url=web.url)
        down.synced()
        assert_equal(up, down)
        before = len(web.requests)
        assert down.sync().code == 0
        (request,) = web.requests[before:]
        assert [request.split()[1], *request.split()[-2:]] == [
            "304",
            "0",
            f"/git/{up.name}.git/static/head",
        ]
        up.put(b"d/new", b"new")
        up.commit()
        publish_to(www, up)
        down.synced()
        assert_equal(up, down)


def test_another_upstream_stands_in(place: Site, www: Path, web: Nginx) -> None:
    """`serve` for static files that are gone, and static files for a `serve` that is."""
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    publish_to(www, up)
    down = place.downstream(up, url=(web.url, place.url))
    down.synced()
    shutil.rmtree(www / "git")
    up.put(b"a", b"22")
    up.commit()
    down.synced()
    assert_equal(up, down)
    publish_to(www, up)
    other = place.downstream(up, url=("http://127.0.0.1:1", web.url))
    other.synced()
    assert_equal(up, other)


def test_a_copy_that_is_behind_is_not_fetched(place: Site, www: Path, web: Nginx) -> None:
    """Its head says so: to see that, an outdated copy would be fetched again by each sync."""
    up = place.upstream()
    up.many(b"d", 300)
    up.commit()
    down = place.synced_downstream(up)
    up.put(b"a", b"1")
    up.commit()
    publish_to(www, up)
    up.put(b"a", b"22")
    up.commit()
    down.synced()
    for urls, code in (("http://127.0.0.1:1", web.url), 10), (web.url, 46):
        down.configure(url=urls)
        before = len(web.requests)
        assert down.sync().code == code
        assert {each.split()[-1] for each in web.requests[before:]} == {
            f"/git/{up.name}.git/static/head"
        }
