"""Fetching by the program git, from huai's server and from git's, checked by git."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.metadata.git.local import LocalRepository
from huai_client.metadata.git_fetch import GitFetch
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.newest import find_newest
from huai_client.metadata.packs import drop_unfinished
from huai_client.metadata.repository import Repository
from tests.support.git_backend import git_backend
from tests.support.histories import History
from tests.support.http_fixtures import git, running

MANIFESTS = 120


class Client:
    """A repository that is fetched into, and the commits that it keeps."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = path
        self.store = Repository(path)
        self.metadata = MetadataUrl(url)
        self.kept_commits: list[str] = []

    def fetch(self, *, keep: int = 1) -> str:
        """Fetch; keep so many of the newest commits."""
        drop_unfinished(self.path)
        newest = find_newest(self.metadata)
        local = LocalRepository(self.path, self.store, frozenset(self.kept_commits))
        GitFetch(newest, local, timeout=60).complete()
        self.kept_commits = [
            newest.commit,
            *(each for each in self.kept_commits if each != newest.commit),
        ][:keep]
        self.store.keep(self.kept_commits)
        self.check()
        return newest.commit

    def check(self) -> None:
        """Git finds all that there should be and nothing wrong."""
        output = git("-C", self.path, "fsck", "--full", "--strict", "--no-dangling")
        assert not output.replace("notice: HEAD points to an unborn branch (main)", ""), output
        for index in self.packs("idx"):
            git("-C", self.path, "verify-pack", index)
        for commit in self.kept_commits:
            lines = git("-C", self.path, "ls-tree", "-r", f"{commit}^{{tree}}").splitlines()
            assert len(lines) == MANIFESTS

    def packs(self, suffix: str = "pack") -> list[Path]:
        """The files of all packs."""
        return sorted((self.path / "objects" / "pack").glob(f"*.{suffix}"))

    def shallow(self) -> list[str]:
        """The commits without history."""
        file = self.path / "shallow"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def history(tmp_path: Path) -> History:
    (tmp_path / "served").mkdir()
    return History(tmp_path / "served" / "m.git", MANIFESTS)


@pytest.fixture
def url(request: pytest.FixtureRequest, history: History) -> Iterator[str]:
    folder = history.path.parent
    if getattr(request, "param", "huai") == "git":
        with git_backend(folder) as address:
            yield f"{address}/m.git"
    else:
        with running(folder) as server:
            yield f"{server.url}/git/m.git"


BOTH = pytest.mark.parametrize("url", ["huai", "git"], indirect=True)


@pytest.fixture
def client(url: str, tmp_path: Path) -> Client:
    return Client(tmp_path / "fetched", url)


@BOTH
def test_the_first_fetch_and_those_after_it(history: History, client: Client) -> None:
    assert client.fetch() == history.head()
    assert client.shallow() == []  # the first commit has no parents
    before = sum(path.stat().st_size for path in client.packs())
    for _ in range(4):
        newest = history.commit(3)
        assert client.fetch() == newest
        assert newest in client.shallow()
    assert len(client.packs()) == 5
    files = {path.suffix for path in (client.path / "objects").rglob("*") if path.is_file()}
    assert files == {".pack", ".idx"}, "the engine reads nothing else"
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
    sent_ids = git(
        "-C", history.path, "rev-list", "--objects", "--no-object-names", "main", "^main~1"
    )
    bases = objects - set(sent_ids.split())
    assert set(sent_ids.split()) <= objects
    # One manifest and the trees above it, each with at most one base.
    assert len(objects) <= 10
    assert len(bases) <= 5


def newest_index(client: Client) -> bytes:
    """The index of the pack that came last."""
    return max(client.packs("idx"), key=lambda path: path.stat().st_mtime_ns).read_bytes()


def test_several_commits_are_kept_and_offered(history: History, client: Client) -> None:
    commits = []
    for _ in range(4):
        commits.append(client.fetch(keep=3))
        history.commit(5)
    # Back to an older state: all of it is here, from different commits.
    history.point(commits[1])
    assert client.fetch(keep=3) == commits[1]
    assert set(client.shallow()) >= set(client.kept_commits) - {commits[0]}


def test_a_history_that_was_cut(history: History, client: Client) -> None:
    for orphan in (False, True, False, True):
        client.fetch(keep=2)
        history.commit(2, orphan=orphan)
    git("-C", history.path, "reflog", "expire", "--expire=now", "--all")
    git("-C", history.path, "gc", "--quiet", "--prune=now")
    assert client.fetch(keep=2) == history.head()
    history.commit(2)
    assert client.fetch() == history.head()
    for _ in range(3):
        history.commit(30)
    git("-C", history.path, "gc", "--quiet", "--aggressive", "--prune=now")
    client.fetch()
    history.commit(60)
    git("-C", history.path, "gc", "--quiet", "--aggressive", "--prune=now")
    assert client.fetch() == history.head()


@BOTH
def test_many_fetches_with_histories_of_all_kinds(history: History, client: Client) -> None:
    for number in range(12):
        history.commit(number % 4 * 3, orphan=number % 5 == 4)
        client.fetch(keep=1 + number % 3)


@BOTH
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
    client.kept_commits = client.kept_commits[:1]
    assert client.fetch() == history.head()
