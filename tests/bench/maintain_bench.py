"""A year of commits with `maintain` every week: does anything grow but the number of commits?

`--entries` that are never on a disk: each commit changes a thousandth of them, and the whole goes
through the layout as a scan would bring it.  `--rounds` times a hundred commits make the year, so
its days have fewer of them than a mirror's: what is kept is 30 days, and 64 commits at least.
"""

import os
import random
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository as Downstream
from huai_native._native import PackWriter
from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.listing import Listing
from huai_schema.layout import layout
from huai_schema.paths import RelPath
from huai_schema.program.packs import TEMPORARY
from huai_server.paths import module_places
from huai_server.store.disk_use import disk_use
from huai_server.store.maintain import maintain
from huai_server.store.repository import Head, Repository
from huai_server.store.retention import Retention
from tests.bench.figures import Figure
from tests.bench.programs import serving
from tests.bench.stand import Stand

_MODULE = "year"
_CHURN = 0.001
_ROUND = 100
_WEEKS = 52
_QUARTERS = 4
_DAY = 86_400
_RETENTION = Retention(30 * _DAY, 64)
_EPOCH = 1_700_000_000
_FILES = 9
"""Of a directory."""


class _Week(NamedTuple):
    bytes: int
    commit: float
    maintain: float
    step: float
    clone: float


class _Tree:
    """Directories of a few files with digests, in tree order."""

    def __init__(self, entries: int) -> None:
        self._random = random.Random(1)
        count = max(1, entries // (_FILES + 1))
        self._files = [[self._line(name) for name in range(_FILES)] for _ in range(count)]
        self.paths = [b"", *(b"%03d" % top for top in range(min(300, count)))]
        tops = len(self.paths) - 1
        self.paths += [b"%03d/%06d" % (place % tops, place) for place in range(count)]
        self._place = {path: place - tops - 1 for place, path in enumerate(self.paths)}
        self.paths.sort(key=lambda path: path.split(b"/"))

    def churn(self) -> None:
        """Give a thousandth of the files another size, time and digest."""
        files = len(self._files) * _FILES
        for place in self._random.sample(range(files), max(1, int(files * _CHURN))):
            folder, name = divmod(place, _FILES)
            self._files[folder][name] = self._line(name)

    def listings(self) -> Iterator[Listing]:
        for path in self.paths:
            place = self._place[path]
            files = self._files[place] if b"/" in path else []
            leaves = b"".join(line for line, _ in files)
            digests = b"".join(digest for _, digest in files)
            yield Listing(RelPath(path), b"%d" % _EPOCH, leaves, digests)

    def _line(self, name: int) -> tuple[bytes, bytes]:
        size, mtime = self._random.randrange(10**7), _EPOCH + self._random.randrange(10**8)
        return b"pkg_%d-1_all.deb\t%d\t%d\n" % (name, size, mtime), self._random.randbytes(32)


def figures(stand: Stand) -> Iterator[Figure]:
    """The last quarter of the year beside the second one, when as much is kept already."""
    (stand.folder / _MODULE).mkdir()
    stand.server.run("add", _MODULE, stand.folder / _MODULE)
    weeks = list(_weeks(stand))
    quarter = len(weeks) // _QUARTERS
    early, late = weeks[quarter : 2 * quarter], weeks[-quarter:]
    peer = "second quarter"
    largest = max(week.bytes for week in weeks)
    commits = len(weeks) * _each_week(stand)
    note = f"{commits:,} commits of {_CHURN:.1%} churn; at most {largest:,} bytes in the year"
    rows = [
        ("repository after a week's commits", "B"),
        ("commit", "s"),
        ("maintain", "s"),
        ("fetch, one commit behind", "s"),
        ("first fetch", "s"),
    ]
    for place, (what, unit) in enumerate(rows):
        ours, theirs = (median(week[place] for week in part) for part in (late, early))
        name = f"a year: {what}, last quarter"
        yield Figure(name, ours, unit, peer, theirs, note="" if place else note)


def _each_week(stand: Stand) -> int:
    """How many commits."""
    return max(2, stand.rounds * _ROUND // _WEEKS)


def _weeks(stand: Stand) -> Iterator[_Week]:
    places = module_places(stand.server.root, _MODULE)
    repository = Repository.create(places.repository)
    tree = _Tree(stand.entries)
    head: Head | None = None
    each = _each_week(stand)
    with serving(stand.server) as port:
        url = MetadataUrl.of(f"http://127.0.0.1:{port}", _MODULE)
        for week in range(_WEEKS):
            follower, spent = stand.folder / f"follower{week}", []
            for number in range(each):
                now = _EPOCH + int((week + number / each) * 7 * _DAY)
                tree.churn()
                began = time.perf_counter()
                head = _commit(repository, tree, head, now)
                spent.append(time.perf_counter() - began)
                if number == each - 2:
                    _fetch(follower, url)
            step = _fetch(follower, url)
            clone = _fetch(stand.folder / f"clone{week}", url)
            size = disk_use(places).bytes
            began = time.perf_counter()
            maintain(places, _RETENTION, now=_EPOCH + (week + 1) * 7 * _DAY)
            tidied = time.perf_counter() - began
            yield _Week(size, median(spent), tidied, step, clone)


def _fetch(folder: Path, url: MetadataUrl) -> float:
    """Bring a downstream's metadata up to date; how long it took."""
    repository = Downstream(folder)
    began = time.perf_counter()
    commit = repository.fetch(url)
    repository.keep([commit.id])
    return time.perf_counter() - began


def _commit(repository: Repository, tree: _Tree, head: Head | None, now: int) -> Head:
    """As `huai-server commit` does it once it has scanned."""
    repository.remove_unfinished()
    name = os.fsencode(TEMPORARY + secrets.token_hex(8))
    writer = PackWriter(os.fsencode(repository.pack_folder), name, threads=os.cpu_count() or 1)
    top = write_root(Descriptor(_MODULE, ()), layout.build(tree.listings(), writer), writer)
    writer.finish()
    serial = head.info.serial + 1 if head else 1
    totals = Totals(len(tree.paths), len(tree.paths), 0, 1)
    info = CommitInfo(_MODULE, serial, totals, Counts(changed=1))
    return repository.commit(top, info, head, _RETENTION, now=now)
