"""Pages of a large site: many modules, many mirrors, a large directory, searches in many entries.

The commits and attestations are made up, and are written as huai stores them.  Of each page it
measures the bytes, plain and compressed, the time until its first byte, and the CPU time of the
server, which other work on the machine disturbs less.  The first search of a module, which reads
all names, has a figure of its own, and so has the first one after a commit.
"""

import gzip
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from shutil import copytree
from typing import NamedTuple

from huai_native._native import PrivateKey
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.codec.commits import CommitInfo, Counts
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import Holding, holding_path, write_holding
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.processor import processor_time
from tests.bench.programs import Program, Serving, serving
from tests.bench.stand import Stand, show_progress
from tests.support.http_fixtures import git

MODULES, MIRRORS, COMMITS = 206, 300, 60
NAMES, FOLDER = 40_000, "000"
MIRRORED = 30
"""The modules that mirrors attest."""
GAP = 10_000
"""Seconds between two commits."""
_ROUNDS, _COMMITS_MADE = 20, 5
_SECONDS = 60
_TIME = Goal(0.05, "< 50 ms")
_PLAIN, _COMPRESSED = Goal(60_000, "< 60 kB"), Goal(15_000, "< 15 kB gzip")


def figures(stand: Stand) -> Iterator[Figure]:
    """The bytes of each page, and its time."""
    server = Program("huai-server", stand.folder / "pages")
    large, flat = stand.folder / "pages-large", stand.folder / "pages-flat"
    stand.make(trees.make_tree, large, stand.entries, 1, 0)
    stand.make(trees.make_directories, flat, 1, NAMES + 1)
    make_site(server, {"large": large, "flat": flat})
    entries = f"{stand.entries:,} entries"
    search = "/modules/large/tree/latest?q="
    with serving(server) as serve:
        site = Site(serve)
        top = "/modules/large/tree/latest"
        yield Figure(f"first view of the top of {entries}", site.view(top).seconds, "s", goal=_TIME)
        yield Figure(f"first search in {entries}", site.view(search + "none").seconds, "s")
        for title, path in {
            f"front page of {MODULES} modules": "/",
            f"page of a module with {COMMITS} commits": "/modules/module-007",
            f"{MIRRORS} mirrors of {MIRRORED} modules": "/mirrors",
            f"top of {entries}": top,
            f"search in {entries}": search + "7a3",
            f"search in {entries} without a hit": search + "none",
            f"search in all {MODULES + 2} modules": "/search?q=7a3",
            f"directory of {NAMES:,} names": f"/modules/flat/tree/latest/{FOLDER}",
            f"directory of {NAMES:,} names, the last": (
                f"/modules/flat/tree/latest/{FOLDER}?start={NAMES - 200}"
            ),
        }.items():
            page = site.view(path).page
            yield Figure(f"{title}, plain", len(page), "B", goal=_PLAIN)
            yield Figure(f"{title}, gzip", len(gzip.compress(page, 5)), "B", goal=_COMPRESSED)
            seconds, processor = site.measure(path)
            yield Figure(f"{title}, first byte", seconds, "s", goal=_TIME, rounds=_ROUNDS)
            yield Figure(f"{title}, CPU", processor, "s", rounds=_ROUNDS)
        again = partial(site.view, f"{search}none")
        new = statistics.median(after_commits(server, large, again))
        yield Figure(
            f"first search after a commit, of {entries}", new, "s", goal=_TIME, rounds=_COMMITS_MADE
        )


class View(NamedTuple):
    """A page, and the seconds until its first byte."""

    page: bytes
    seconds: float


class Site:
    """The running server, and one connection to it."""

    def __init__(self, serve: Serving) -> None:
        self._process = serve.process
        self._connection = HTTPConnection("127.0.0.1", serve.port, timeout=_SECONDS)

    def view(self, path: str) -> View:
        """Request a page."""
        begun = time.monotonic()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        seconds = time.monotonic() - begun
        page = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: status {answer.status}")
        return View(page, seconds)

    def measure(self, path: str) -> tuple[float, float]:
        """Return the median seconds until the first byte, and the server's CPU time a request."""
        before = processor_time(self._process)
        seconds = [self.view(path).seconds for _ in range(_ROUNDS)]
        return statistics.median(seconds), (processor_time(self._process) - before) / _ROUNDS


def after_commits(server: Program, tree: Path, search: Callable[[], View]) -> Iterator[float]:
    """Change a file and commit, several times; yield the seconds of the search that follows."""
    place = next(each for each in (tree / "pool").rglob("*") if each.is_dir())
    for number in range(_COMMITS_MADE):
        changed = place / f"new-{number}"
        changed.touch()
        changes = tree.parent / "pages-changes"
        changes.write_bytes(os.fsencode(changed.relative_to(tree)) + b"\0")
        server.run("commit", "large", "--changes", changes)
        yield search().seconds


def make_site(server: Program, trees_by_name: Mapping[str, Path]) -> None:
    """Add all modules, with a week of commits, and their mirrors."""
    show_progress(f"making {MODULES} modules and {MIRRORS} mirrors")
    random, now = Random(7), int(time.time())
    for name, large in trees_by_name.items():
        server.run("add", name, large, "--digest", "off")
        server.run("commit", name)
    first = "module-000"
    tree = server.root.parent / "pages-tree"
    tree.mkdir()
    (tree / "file").touch()
    server.run("add", first, tree)
    server.run("commit", first)
    first_repository = module_places(server.root, first).repository
    mirrors = {
        f"mirror-{number:03}.example": PrivateKey.generate(number.to_bytes(32), "bench")
        for number in range(MIRRORS)
    }
    _configure(server.root, tree, mirrors)
    for number in range(MODULES):
        name = f"module-{number:03}"
        repository = module_places(server.root, name).repository
        if number:
            copytree(first_repository, repository)
        _commit(repository, name, random, now - random.randrange(GAP))
        if number < MIRRORED:
            _attest(server.root, name, repository, mirrors, random)


def _commit(repository: Path, name: str, random: Random, newest: int) -> None:
    """Write the commits of a week, all of the same tree."""
    totals = Repository(repository).head()
    assert totals is not None
    parts = []
    for serial in range(2, COMMITS + 1):
        counts = Counts(*(random.randrange(most) for most in (900, 300, 90, 2)))
        size = totals.info.totals._replace(
            files=random.randrange(10**6), bytes=random.randrange(10**12)
        )
        message = CommitInfo(name, serial, size, counts).encode()
        stamp = f"huai <huai@example.org> {newest - (COMMITS - serial) * GAP} +0000"
        parts.append(
            f"commit refs/heads/main\ncommitter {stamp}\ndata {len(message.encode())}\n{message}\n"
            + ("from refs/heads/main^0\n" if serial == 2 else "")
        )
    git("-C", repository, "fast-import", "--quiet", stdin="".join(parts).encode())


def _configure(root: Path, tree: Path, mirrors: Mapping[str, PrivateKey]) -> None:
    """Add the other modules, and the mirrors."""
    tables = ['[mirrors]\nmax_lag = "1d"']
    tables += (f'[modules.module-{each:03}]\npath = "{tree}"' for each in range(1, MODULES))
    tables += (
        f'[allowed_downstreams."{host}"]\nkey = "{private.public}"\nhosts = ["{host}"]'
        for host, private in mirrors.items()
    )
    with (root / "server.toml").open("a") as file:
        file.write("\n\n".join(["", *tables, ""]))


def _attest(
    root: Path, name: str, repository: Path, mirrors: Mapping[str, PrivateKey], random: Random
) -> None:
    """Record what each mirror holds of a module."""
    heads = [*Repository(repository).history()]
    identity, now = Repository(repository).snapshot(heads[0])[0].identity, int(time.time())
    for host, private in mirrors.items():
        head = random.choice((heads[0], heads[0], heads[0], heads[1], heads[2]))
        content = (name, identity, head.info.serial, head.commit, now)
        statement = Attestation(*content, partial=False, urls=(f"https://{host}/{name}",))
        text = statement.signed(private.sign)
        rows = tuple((now - day * 40_000, random.randrange(90_000)) for day in range(60, 0, -1))
        lags, since = LagHistory(rows[0][0], rows), head.time + 60
        place = holding_path(root / "mirrors", name, host)
        write_holding(place, Holding(SignedAttestation.decode(text), text, since, lags))
