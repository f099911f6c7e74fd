"""What a fetch of many changed manifests costs the client: its CPU time, receiving included.

Ours beside libgit2's own and stock git, each from the same state into a repository of its own.
Run as a program, it is one such fetch, in a process that does nothing else:
`python -m tests.bench.git_fetch_bench ours|pygit2 REPOSITORY URL`, and prints seconds.
"""

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2

from huai_client.metadata.git import Fetch, LocalRepository
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from tests.bench.figures import Figure, Goal
from tests.bench.stand import Stand, say
from tests.support.histories import History
from tests.support.http_fixtures import git, running

_SIZES = (1000, 4000, 16_000)
_GOALS = {1000: Goal(0.15, "< 0.15 s")}
_BRANCH = "+refs/heads/main:refs/huai/kept/bench"
_SECONDS = 600


def figures(stand: Stand) -> Iterator[Figure]:
    """For each number of changed manifests; then a first fetch."""
    for size in _SIZES:
        folder = stand.folder / f"gitfetch-{size}"
        (folder / "served").mkdir(parents=True)
        say(f"making {size} manifests, and changing them all")
        history = History(folder / "served" / "m.git", size)
        old, new = history.head(), history.commit(size)
        with running(folder / "served") as server:
            url = f"{server.url}/git/m.git"
            history.point(old)
            first = {name: fetch(folder / name, url) for name, fetch in _FETCHES.items()}
            history.point(new)
            # The server answers the second of equal questions from memory, which is not measured.
            again = {name: fetch(folder / name, url) for name, fetch in _FETCHES.items()}
        shutil.rmtree(folder)
        for name in ("pygit2", "git"):
            what = f"CPU of a fetch, {size:,} manifests changed"
            goal = _GOALS.get(size)
            yield Figure(what, again["ours"], "s", name, again[name], goal)
        yield Figure(
            f"CPU of a first fetch, {size:,} manifests", first["ours"], "s", "git", first["git"]
        )


def _by_program(kind: str) -> Callable[[Path, str], float]:
    def fetch(repository: Path, url: str) -> float:
        command = [sys.executable, "-m", "tests.bench.git_fetch_bench", kind, str(repository), url]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=_SECONDS)
        return float(done.stdout)

    return fetch


def _by_git(repository: Path, url: str) -> float:
    if not repository.exists():
        git("init", "--quiet", "--bare", repository)
    environment = {**os.environ, "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null"}
    command = ["git", "-C", str(repository), "fetch", "--quiet", "--depth", "1", url, _BRANCH]
    before = _children()
    subprocess.run(command, check=True, env=environment, timeout=_SECONDS)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_FETCHES = {"ours": _by_program("ours"), "pygit2": _by_program("pygit2"), "git": _by_git}


def main() -> None:
    """One fetch."""
    kind, path, url = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    store = Repository(path)
    kept = [path.name for path in (path / "refs" / "huai" / "kept").glob("*")]
    began = time.process_time()
    if kind == "pygit2":
        remote = pygit2.Repository(str(path)).remotes.create_anonymous(url)
        remote.fetch([_BRANCH], depth=1)
    else:
        newest = find_newest(MetadataUrl(url))
        Fetch(newest, LocalRepository(path, store, kept), timeout=_SECONDS).complete()
        store.keep([newest.commit])
    print(time.process_time() - began)


if __name__ == "__main__":
    main()
