"""The client's own fetch against huai's server and against git's, judged by git."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

from huai_client.metadata.git import Fetch, LocalRepository
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from tests.support.git_backend import git_backend
from tests.support.histories import History
from tests.support.http_fixtures import ENVIRONMENT, ROOT, git, running

MANIFESTS = 120


class Client:
    """A repository that is fetched into, and the commits that it keeps."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = path
        self.store = Repository(path)
        self.metadata = MetadataUrl(url)
        self.kept: list[str] = []

    def fetch(self, *, keep: int = 1) -> str:
        """Fetch; keep so many of the newest commits."""
        newest = find_newest(self.metadata)
        here = LocalRepository(self.path, self.store, frozenset(self.kept))
        Fetch(newest, here, timeout=60).complete()
        self.kept = [newest.commit, *(each for each in self.kept if each != newest.commit)][:keep]
        self.store.keep(self.kept)
        self.check()
        return newest.commit

    def check(self) -> None:
        """Git and pygit2 find all that there should be, and nothing wrong."""
        said = git("-C", self.path, "fsck", "--full", "--strict", "--no-dangling")
        assert not said.replace("notice: HEAD points to an unborn branch (main)", ""), said
        for index in self.packs("idx"):
            git("-C", self.path, "verify-pack", index)
        opened = pygit2.Repository(str(self.path))
        for commit in self.kept:
            assert len(read_all(opened[commit].peel(pygit2.Tree))) == MANIFESTS
            assert opened.get(commit) is not None
            ours = git("-C", self.path, "rev-list", "--objects", "--no-object-names", commit)
            assert commit in ours
        assert not list((self.path / "objects" / "pack").glob("tmp_*"))

    def packs(self, suffix: str = "pack") -> list[Path]:
        """The files of all packs."""
        return sorted((self.path / "objects" / "pack").glob(f"*.{suffix}"))

    def shallow(self) -> list[str]:
        """The commits without history."""
        file = self.path / "shallow"
        return file.read_text().split() if file.exists() else []


def read_all(tree: pygit2.Tree) -> list[bytes]:
    """Every blob below a tree."""
    found: list[bytes] = []
    for item in tree:
        if isinstance(item, pygit2.Tree):
            found += read_all(item)
        else:
            assert isinstance(item, pygit2.Blob)
            found.append(item.data)
    return found


@pytest.fixture
def history(tmp_path: Path) -> History:
    (tmp_path / "served").mkdir()
    return History(tmp_path / "served" / "m.git", MANIFESTS)


@pytest.fixture(params=["huai", "git"])
def url(request: pytest.FixtureRequest, history: History) -> Iterator[str]:
    folder = history.path.parent
    if request.param == "git":
        with git_backend(folder) as address:
            yield f"{address}/m.git"
    else:
        with running(folder) as server:
            yield f"{server.url}/git/m.git"


@pytest.fixture
def client(url: str, tmp_path: Path) -> Client:
    return Client(tmp_path / "fetched", url)


def test_the_first_fetch_and_those_after_it(history: History, client: Client) -> None:
    assert client.fetch() == history.head()
    assert client.shallow() == []  # the first commit has no parents
    before = sum(path.stat().st_size for path in client.packs())
    for _ in range(4):
        newest = history.commit(3)
        assert client.fetch() == newest
        assert newest in client.shallow()
    assert len(client.packs()) == 5
    # Three manifests, a few trees, and once more what they were made from.
    added = sum(path.stat().st_size for path in client.packs()) - before
    assert added < before


def test_only_what_changed_is_sent(history: History, client: Client) -> None:
    client.fetch()
    history.commit(1)
    client.fetch()
    objects = {
        line.split()[1] for line in git("show-index", stdin=newest_index(client)).splitlines()
    }
    sent = git("-C", history.path, "rev-list", "--objects", "--no-object-names", "main", "^main~1")
    bases = objects - set(sent.split())
    assert set(sent.split()) <= objects
    # One manifest and the trees above it, each with at most one base.
    assert len(objects) <= 10
    assert len(bases) <= 5


def newest_index(client: Client) -> bytes:
    """The index of the pack that came last."""
    return max(client.packs("idx"), key=lambda path: path.stat().st_mtime_ns).read_bytes()


def test_several_commits_are_kept_and_offered(history: History, client: Client) -> None:
    kept = []
    for _ in range(4):
        kept.append(client.fetch(keep=3))
        history.commit(5)
    # Back to an older state: all of it is here, from different commits.
    history.point(kept[1])
    assert client.fetch(keep=3) == kept[1]
    assert set(client.shallow()) >= set(client.kept) - {kept[0]}


def test_nothing_but_a_commit(history: History, client: Client) -> None:
    client.fetch()
    history.commit(0)
    assert client.fetch(keep=2) == history.head()


def test_a_history_that_was_cut(history: History, client: Client) -> None:
    for orphan in (False, True, False, True):
        client.fetch(keep=2)
        history.commit(2, orphan=orphan)
    git("-C", history.path, "reflog", "expire", "--expire=now", "--all")
    git("-C", history.path, "gc", "--quiet", "--prune=now")
    assert client.fetch(keep=2) == history.head()
    history.commit(2)
    assert client.fetch() == history.head()


def test_a_repacked_upstream(history: History, client: Client) -> None:
    for _ in range(3):
        history.commit(30)
    git("-C", history.path, "gc", "--quiet", "--aggressive", "--prune=now")
    client.fetch()
    history.commit(60)
    git("-C", history.path, "gc", "--quiet", "--aggressive", "--prune=now")
    assert client.fetch() == history.head()


def test_many_fetches_with_histories_of_all_kinds(history: History, client: Client) -> None:
    for number in range(12):
        history.commit(number % 4 * 3, orphan=number % 5 == 4)
        client.fetch(keep=1 + number % 3)


def test_git_itself_goes_on_from_what_was_fetched(
    history: History, client: Client, url: str
) -> None:
    history.commit(2)
    client.fetch()
    history.commit(2)
    git(
        "-C", client.path, "fetch", "--quiet", "--depth=1", url, "+refs/heads/main:refs/huai/kept/g"
    )
    git("-C", client.path, "fsck", "--full", "--strict")
    git("-C", client.path, "update-ref", "-d", "refs/huai/kept/g")
    history.commit(2)
    client.fetch()
    git("-C", client.path, "fetch", "--quiet", "--unshallow", url)
    git("-C", client.path, "fsck", "--full", "--strict")


def test_what_was_lost_here_is_noticed_and_fetched_anew(history: History, client: Client) -> None:
    client.fetch()
    first = set(client.packs())
    history.commit(5)
    client.fetch(keep=2)
    history.commit(40)
    # The second commit itself is still there, most of what is in it is not.
    for path in first:
        path.with_suffix(".idx").unlink()
        path.unlink()
    client.store = Repository(client.path)
    client.kept = client.kept[:1]
    assert client.fetch() == history.head()


def test_what_a_killed_fetch_left_goes_away(history: History, client: Client) -> None:
    client.fetch()
    folder = client.path / "objects" / "pack"
    for name in ("tmp_huai_pack", "tmp_huai_idx", f"pack-{'1' * 40}.pack"):
        (folder / name).write_bytes(b"half")
    (client.path / "shallow.lock").write_bytes(b"half")
    history.commit(1)
    client.fetch()
    assert not (client.path / "shallow.lock").exists()
    assert {path.stem for path in folder.iterdir()} == {path.stem for path in client.packs("idx")}


def test_equal_clients_ask_alike(history: History, url: str, tmp_path: Path) -> None:
    clients = [Client(tmp_path / name, url) for name in ("one", "two")]
    for each in clients:
        each.fetch()
    history.commit(30)
    for each in clients:
        each.fetch()
    one, two = ([path.name for path in each.packs()] for each in clients)
    assert one == two
    assert clients[0].shallow() == clients[1].shallow()


def test_pygit2_is_not_needed() -> None:
    code = "import sys, huai_client.metadata.git; sys.exit('pygit2' in sys.modules)"
    search = os.pathsep.join(str(ROOT / part) for part in ("native/python", "schema", "client"))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**ENVIRONMENT, "PYTHONPATH": search}, check=False
    )
    assert done.returncode == 0
