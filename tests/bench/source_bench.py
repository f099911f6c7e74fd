"""An upstream that does not run huai, listed by its rsync daemon, compared with rsync itself.

Three daemons serve one tree: with a list as quick-fedora-mirror reads it, with a time stamp only,
and with neither.  rsync copies from the last one.  First copies are made once.  If the script
quick-fedora-mirror is on PATH (it needs zsh), it copies too, by the same list.  The case `lists`
reads made-up lists of `--entries`, without a tree.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import time

from msgspec.structs import replace

from huai_client.metadata.source.record import load_record, save_record
from huai_client.state.paths import module_places
from tests.bench import long_lists
from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program
from tests.bench.spending import (
    Contestant,
    Spent,
    compare_clients,
    cpu,
    peak,
    spend,
    take_turns,
    wall,
)
from tests.bench.stand import CHURN, Stand

_LIST, _STAMP = "fullfiletimelist-bench", "lastsync"
_HIDDEN = {"published": "", "stamped": f"/{_LIST}", "plain": f"/{_LIST} /{_STAMP}"}
"""The files that each daemon does not serve."""
_LISTING = Path(__file__).with_name("listing.py")
_QUICK = "quick-fedora-mirror"


def figures(stand: Stand) -> Iterator[Figure]:
    """Long lists; a first copy, the list, syncs without changes, syncs of changes."""
    cases = stand.chosen(("lists", "syncs"))
    if "lists" in cases:
        yield from _long_lists(stand)
    if "syncs" not in cases:
        return
    stand.change(publish)
    upstream = _Upstream(stand)
    yield from upstream.first_copy()
    yield from upstream.list_alone()
    yield from upstream.nothing_new()
    yield from upstream.changes()


def publish(tree: Path) -> None:
    """Write the list and the time stamp of a tree, as an upstream does after an update."""
    for name in (_LIST, _STAMP):
        (tree / name).unlink(missing_ok=True)
    rows = "".join(sorted(_rows(tree)))
    text = f"[Version]\n2\n\n[Files]\n{rows}\n[Checksums SHA1]\n\n[End]\n"
    (tree / _LIST).write_text(text)
    (tree / _STAMP).write_text(f"{time():.0f}\n")


def _long_lists(stand: Stand) -> Iterator[Figure]:
    """CPU time an entry and memory of reading lists; of published ones, of comparing two."""
    for name, versions in (("lines", 1), ("mtree", 1), ("fullfiletimelist", 2)):
        files = [stand.folder / f"{name}-{version}" for version in range(versions)]
        for version, file in enumerate(files):
            stand.make(long_lists.write, file, name, stand.entries, version)
        command = ["python", str(_LISTING), *map(str, files)]
        spent = take_turns({"": partial(spend, command)}, stand.rounds, stand.rest)[""]
        yield from _of_list(f"a list, {name}", stand, spent)
        for file in files:
            file.unlink()


def _of_list(
    title: str, stand: Stand, ours: Sequence[Spent], peer: str = "", theirs: Sequence[Spent] = ()
) -> Iterator[Figure]:
    """Yield CPU time an entry and memory of reading a list."""
    millions = stand.entries / 1e6
    of_peer = (cpu(theirs) / millions, peak(theirs)) if theirs else (None, None)
    goal = Goal(2, "2 µs")
    yield Figure(f"{title}, CPU an entry", cpu(ours) / millions, "µs", peer, of_peer[0], goal)
    goal = Goal(100 << 20, "100 MiB")
    yield Figure(f"{title}, memory", peak(ours), "B", peer, of_peer[1], goal)


def _rows(tree: Path) -> Iterator[str]:
    folders = [os.fspath(tree)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                kind = "f"
                if entry.is_symlink():
                    kind = "l"
                elif entry.is_dir():
                    kind = "d"
                    folders.append(entry.path)
                seconds = max(status.st_mtime, status.st_ctime)
                path = entry.path[len(os.fspath(tree)) + 1 :]
                yield f"{seconds:.0f}\t{kind}\t{status.st_size}\t{path}\n"


class _Upstream:
    """The daemons of the tree, and the mirrors of it."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._urls = {
            name: stand.rsync_daemon(name, stand.tree, exclude=hidden)
            for name, hidden in _HIDDEN.items()
        }
        self._clients = {
            name: Program("huai-client", stand.folder / f"client-{name}") for name in _HIDDEN
        }
        self._peer = stand.folder / "peer"
        self._quick = self._configure_quick() if shutil.which(_QUICK) else None

    def first_copy(self) -> Iterator[Figure]:
        """Fill all mirrors."""
        for name in ("published", "plain"):
            self._add(name, name)
        self._peer.mkdir()
        peer = "rsync -aH"
        contestants: dict[str, Contestant] = {
            "published": partial(self._sync, "published"),
            peer: partial(self._rsync, peer),
            "plain": partial(self._sync, "plain"),
            **self._quick_contestant(),
        }
        samples = take_turns(contestants, 1, self._stand.rest)
        self._add("stamped", "plain")  # it finds all files in place
        self._sync("stamped")
        for name in ("published", "plain"):
            yield from compare_clients(f"first copy, {name}", samples[name], peer, samples[peer])
        yield from _compare_quick("first copy", samples)

    def list_alone(self) -> Iterator[Figure]:
        """CPU time an entry and memory of listing the tree."""
        peer, url = "rsync -r --list-only", self._urls["plain"]
        samples = take_turns(
            {
                "huai": lambda: spend(["python", str(_LISTING), url]),
                peer: lambda: spend([*peer.split(), f"{url}/"]),
            },
            self._stand.rounds,
            self._stand.rest,
        )
        ours, theirs = samples["huai"], samples[peer]
        yield Figure("the list alone", wall(ours), "s", peer, wall(theirs))
        yield from _of_list("the list alone", self._stand, ours, peer, theirs)

    def nothing_new(self) -> Iterator[Figure]:
        """Syncs of a tree that has not changed."""
        peers = {"published": "rsync -an --delete", "stamped": "rsync -an"}
        contestants: dict[str, Contestant] = {
            **{name: partial(self._sync, name) for name in peers},
            **{peer: partial(self._rsync, peer) for peer in peers.values()},
            **self._quick_contestant(),
        }
        samples = take_turns(contestants, self._stand.rounds, self._stand.rest)
        for name, peer in peers.items():
            yield from compare_clients(f"nothing new, {name}", samples[name], peer, samples[peer])
        yield from _compare_quick("nothing new", samples)

    def changes(self) -> Iterator[Figure]:
        """Whole syncs of a changed tree."""
        peer = "rsync -aH --delete"
        turns: list[tuple[str, Contestant]] = [
            ("published", partial(self._sync, "published")),
            (peer, partial(self._rsync, peer)),
            ("plain", partial(self._sync, "plain")),
            *self._quick_contestant().items(),
        ]
        samples: dict[str, list[Spent]] = {name: [] for name, _ in turns}
        reads = dict.fromkeys(samples, 0)
        for number in range(self._stand.rounds):
            self._stand.churn()
            self._stand.change(publish)
            self._make_stale("plain")
            for name, turn in turns if number % 2 == 0 else reversed(turns):
                self._stand.rest()
                with self._stand.counting_reads(reads, name):
                    samples[name].append(turn())
        for name in ("published", "plain") if self._stand.cold else ():
            goal = Goal(0.02, "0.02", ratio=True)
            title = f"{CHURN:.1%} changed, {name}, reads of the downstream's disk"
            yield Figure(title, reads[name], "", peer, reads[peer], goal)
        for name in ("published", "plain"):
            title = f"{CHURN:.1%} changed, {name}, whole sync"
            yield from compare_clients(title, samples[name], peer, samples[peer])
        yield from _compare_quick(f"{CHURN:.1%} changed", samples)

    def _add(self, name: str, folder: str) -> None:
        dest = self._stand.folder / folder
        dest.mkdir(exist_ok=True)
        self._clients[name].run("add", name, self._urls[name], dest)

    def _sync(self, name: str) -> Spent:
        return spend(self._clients[name].command("sync", name, "--quiet"))

    def _rsync(self, command: str) -> Spent:
        return spend([*command.split(), f"{self._urls['plain']}/", f"{self._peer}/"])

    def _configure_quick(self) -> Path:
        """Write the configuration of quick-fedora-mirror, for a copy in `quick`; return its path.

        Its daemon serves the folder above the tree, as its module has to hold other modules.
        """
        folder = self._stand.folder / "quick"
        folder.mkdir()
        url = self._stand.rsync_daemon("master", self._stand.tree.parent)
        configuration = folder / "quick.conf"
        configuration.write_text(
            f"DESTD={folder}\nTIMEFILE={folder}/time\nREMOTE={url.removesuffix('/master')}\n"
            f"MASTERMODULE=master\nMODULES=(tree)\nMODULEMAPPING=(tree {self._stand.tree.name})\n"
            f"FILELIST={_LIST}\nEXTRAFILES=()\n"
        )
        return configuration

    def _quick_contestant(self) -> dict[str, Contestant]:
        """Return quick-fedora-mirror under its name, or nothing if it is missing here."""
        if self._quick is None:
            return {}
        command = ["zsh", shutil.which(_QUICK) or _QUICK, "-c", os.fspath(self._quick)]
        return {_QUICK: partial(spend, command)}

    def _make_stale(self, name: str) -> None:
        """Let the last list be as old as makes the next sync list again."""
        folder = module_places(self._clients[name].root, name).repository
        record = load_record(folder, self._urls[name])
        assert record is not None
        save_record(folder, replace(record, listed=0.0))


def _compare_quick(title: str, samples: Mapping[str, Sequence[Spent]]) -> Iterator[Figure]:
    """Compare a sync by a published list with quick-fedora-mirror, if that took part."""
    if _QUICK in samples:
        yield from compare_clients(
            f"{title}, published", samples["published"], _QUICK, samples[_QUICK]
        )
