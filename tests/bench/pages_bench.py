"""Pages of a large site: many modules, many mirrors, and a search in many entries.

The commits and attestations are made up, and are written as huai stores them.  Each page is the
first view of a browser without a cache: its bytes, plain and compressed, and the time until it is
there, which a browser waits for its first byte.
"""

import gzip
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from shutil import copytree

from huai_native._native import PrivateKey
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_schema.codec.commits import CommitInfo, Counts
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import Holding, holding_path, write_holding
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program, serving
from tests.bench.stand import Stand, show_progress
from tests.support.http_fixtures import git

MODULES, MIRRORS, COMMITS = 206, 300, 60
MIRRORED = 30
"""The modules that mirrors attest."""
GAP = 10_000
"""Seconds between two commits."""
_ROUNDS = 9
_SECONDS = 60
_TIME = Goal(0.05, "< 50 ms")
_PLAIN, _COMPRESSED = Goal(60_000, "< 60 kB"), Goal(15_000, "< 15 kB gzip")


def figures(stand: Stand) -> Iterator[Figure]:
    """The bytes of each page, and its time."""
    server = Program("huai-server", stand.folder / "pages")
    large = stand.folder / "pages-large"
    stand.make(trees.make_tree, large, stand.entries, 1, 0)
    make_site(server, large)
    with serving(server) as port:
        url = f"http://127.0.0.1:{port}"
        for title, path in {
            f"front page of {MODULES} modules": "/",
            f"page of a module with {COMMITS} commits": "/modules/module-007",
            f"{MIRRORS} mirrors of {MIRRORED} modules": "/mirrors",
            f"search in {stand.entries:,} entries": "/modules/large/tree/latest?q=7a3",
            "directory": "/modules/large/tree/latest",
        }.items():
            page = view(url + path)
            yield Figure(f"{title}, plain", len(page), "B", goal=_PLAIN)
            yield Figure(f"{title}, gzip", len(gzip.compress(page, 5)), "B", goal=_COMPRESSED)
            seconds = statistics.median(timed(partial(view, url + path)))
            yield Figure(f"{title}, time", seconds, "s", goal=_TIME)


def view(url: str) -> bytes:
    """Return the page at an address."""
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 (our own)
        return bytes(answer.read())


def timed(work: Callable[[], object]) -> Iterator[float]:
    """Yield the seconds of each of several runs, after one that fills caches."""
    work()
    for _ in range(_ROUNDS):
        begun = time.monotonic()
        work()
        yield time.monotonic() - begun


def make_site(server: Program, large: Path) -> None:
    """Add all modules, with a week of commits, and their mirrors."""
    show_progress(f"making {MODULES} modules and {MIRRORS} mirrors")
    random, now = Random(7), int(time.time())
    server.run("add", "large", large, "--digest", "off")
    server.run("commit", "large")
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
