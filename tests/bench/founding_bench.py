"""The figures of the documents that huai began with, next to huai's; `--case` names a part.

`reads`, `streams`, `large`: those of rsync-huai, of msrsync, of the patched `rsync --inplace` and
of ZFS, with the peer of each that runs here.  msrsync is 1,000 files for each of several runs of
rsync at a time, as it does.  `size` and `share`: plots of what an update costs, over the entries of
the tree up to `--entries`, and over the share of its files that changed.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.bench import trees
from tests.bench.disk_reads import DiskReads, NotCountedError, Reads, drop_caches
from tests.bench.fallback_stand import memory_file_system, served, upstream
from tests.bench.figures import Figure, show
from tests.bench.huge_bench import GIB, list_cases, measure_case
from tests.bench.plot import Panel, write_plot
from tests.bench.scale_bench import CHANGES, RSYNC, SYNC, MirroredTree, Samples
from tests.bench.spending import Spent, cpu, spend, take_turns, wall
from tests.bench.stand import Stand, show_progress
from tests.bench.web_bench import make_large

if TYPE_CHECKING:
    from tests.bench.spending import Contestant

_PAGE, _MEASURED = "SCALE.md", "Measured with "
"""The page of the table, and the first words of the line above it."""
_FILES = 100_000
"""Empty ones, as in the document."""
_STREAMS = {1: "x0.76", 2: "x1.32", 4: "x2.13", 8: "x2.14"}
"""How many times as fast as rsync msrsync was."""
_SIZES = {100_000: "0.1", 300_000: "0.3", 1_000_000: "1", 3_000_000: "3", 10_000_000: "10"}
_SHARES = (0, 0.001, 0.01, 0.1, 0.3, 1)
_SHARE_ENTRIES = 100_000
_UPDATED = 0.03
"""The share that changed in the document: 4.8 of 154 GB."""
_NOTHING_NEW = f"{SYNC}, nothing new"

_MSRSYNC = """
cd "$1" && find . ! -type d -print0 | xargs -0 -n 1000 -P "$3" \\
    sh -c 'printf "%s\\0" "$@" | rsync -a --from0 --files-from=- . "$0"' "$2"
"""
_FOUND = {
    "touched": ("commit", "1 GB: rsync 13.2 s, ZFS 1.7 s; 8 GB: 111.9 s, 1.7 s"),
    "renamed": ("commit", "8 GB: rsync 1479 s, ZFS 1.7 s"),
    "swapped": ("processes", "rsync 92 s, patched 0.63 s"),
}
"""The document's figures for cases of `huge`, and how the title of their row ends."""

Row = tuple[Figure, str]
"""A figure, and that of the document."""


def figures(stand: Stand) -> Iterator[Figure]:
    """Yield the rows of the table, then the values of the plots."""
    chosen = stand.chosen([*_TABLE, *_PLOTS])
    rows: list[Row] = []
    for case in chosen:
        if case in _TABLE:
            rows += _TABLE[case](stand)
    if set(_TABLE) <= set(chosen):
        _write_table(stand, rows)
    yield from (figure for figure, _ in rows)
    for case in chosen:
        if case in _PLOTS:
            yield from _PLOTS[case](stand)


def _reads(stand: Stand) -> Iterator[Row]:
    """Yield the disk reads of the server, cold, as a control group counts them."""
    assert stand.modules
    with stand.counted():
        assert stand.port
    try:
        yield from _reads_of_syncs(stand)
        yield from _reads_of_scans(stand)
        yield from _reads_of_rsync(stand)
    except NotCountedError as reason:
        show_progress(f"disk reads are not counted: {reason}")


def _reads_of_syncs(stand: Stand) -> Iterator[Row]:
    sync = stand.client.command("sync", "digests", "--quiet")
    rsync = [*RSYNC.split(), f"{stand.daemon}/", f"{stand.copy('theirs')}/"]
    server, daemon = stand.server_reads, stand.daemon_reads
    if server is None or daemon is None:
        return
    groups = [server, daemon]
    spend(sync)
    counts: dict[str, list[Reads]] = {}
    for number in range(stand.rounds):
        for state in ("cold", "next", "changed"):
            if state == "changed":
                stand.churn(share=_UPDATED)
                stand.commit("digests")
            commands = {"huai": sync, "rsync": rsync}
            for name in commands if number % 2 == 0 else reversed(commands):
                reads = _count(groups, commands[name], cold=state != "next")
                counts.setdefault(f"{name}, {state}", []).append(reads)
    title = "disk reads of the server, nothing new"
    ours, theirs = counts["huai, cold"], counts["rsync, cold"]
    yield _row(title, ours, RSYNC, theirs), "rsync 10,658, rsync-huai 51"
    sizes = [median(each.size for each in samples) for samples in (ours, theirs)]
    yield (
        Figure(f"{title}, bytes", sizes[0], "B", RSYNC, sizes[1]),
        "rsync 45.4 MB, rsync-huai 2.0 MB",
    )
    yield _row(f"{title}, the next poll", counts["huai, next"], RSYNC, counts["rsync, next"]), ""
    title = f"disk reads of the server, {_UPDATED:.0%} changed, content included"
    ours, theirs = counts["huai, changed"], counts["rsync, changed"]
    yield _row(title, ours, RSYNC, theirs), "rsync 88,846, rsync-huai 83,510"


def _reads_of_scans(stand: Stand) -> Iterator[Row]:
    """Yield the reads of the upstream's own look at its tree."""
    commands = {
        "commit": stand.server.command("commit", "digests"),
        "find -printf": ["find", str(stand.tree), "-printf", "%P %s %T@\\n"],
        "du": ["du", "-s", str(stand.tree)],
    }
    counts: dict[str, list[Reads]] = {name: [] for name in commands}
    with DiskReads("scan", stand.folder) as group:
        for _ in range(stand.rounds):
            for name, command in commands.items():
                with group.joined():
                    counts[name].append(_count([group], command))
    title = "disk reads of the upstream's commit, nothing changed"
    for peer, document in ("find -printf", "find 3,871"), ("du", "du 10,448"):
        yield _row(title, counts["commit"], peer, counts[peer]), document


def _reads_of_rsync(stand: Stand) -> Iterator[Row]:
    """Yield the reads that a stock client causes, from an attr tree and from the tree."""
    copy = stand.folder / "theirs"
    counts: dict[str, list[Reads]] = {"sparse": [], "real": []}
    with (
        memory_file_system(stand.folder / "attr") as folder,
        upstream(stand, folder) as server,
        served(stand, server) as daemon,
    ):
        for _ in range(stand.rounds):
            for kind, samples in counts.items():
                command = ["rsync", "-an", "--delete", f"{daemon.url}/{kind}/", f"{copy}/"]
                samples.append(_count([daemon.reads], command))
    title = "disk reads of the server, `rsync -an` of a stock client"
    yield _row(title, counts["sparse"], "real tree", counts["real"]), "rsync 10,538, rsync-huai 51"


def _count(groups: Sequence[DiskReads], command: Sequence[str], *, cold: bool = True) -> Reads:
    """Run a command, with nothing in memory if `cold`, and return what all groups read."""
    if cold:
        drop_caches()
    before = [group.now() for group in groups]
    spend(command)
    counts = [group.now().since(old) for group, old in zip(groups, before, strict=True)]
    return Reads(sum(each.operations for each in counts), sum(each.size for each in counts))


def _row(title: str, ours: Sequence[Reads], peer: str, theirs: Sequence[Reads]) -> Figure:
    counts = [median(each.operations for each in samples) for samples in (ours, theirs)]
    return Figure(title, counts[0], "", peer, counts[1])


def _streams(stand: Stand) -> Iterator[Row]:
    """Yield the seconds of first copies on one machine, by several streams."""
    module, files = "founding-empty", min(_FILES, stand.entries)
    client, _ = stand.first_client(module, trees.make_tree, files)
    with stand.counted():
        url = f"http://127.0.0.1:{stand.server_port}"
    tree = stand.folder / module
    numbers = iter(range(10**6))

    def fresh() -> Path:
        dest = stand.folder / f"{module}-{next(numbers)}"
        dest.mkdir()
        return dest

    def sync(streams: int) -> Spent:
        dest = fresh()
        options = "--upstream-name", module, "--content-url", tree
        client.run("add", dest.name, url, dest, *options)
        command = client.command("sync", dest.name, "--quiet", "-o", f"streams={streams}")
        return stand.spend(command)

    def rsync() -> Spent:
        return stand.spend(["rsync", "-a", f"{tree}/", str(fresh())])

    def msrsync(streams: int) -> Spent:
        return stand.spend(["sh", "-c", _MSRSYNC, "sh", str(tree), str(fresh()), str(streams)])

    contestants: dict[str, Contestant] = {"rsync": rsync}
    for streams in _STREAMS:
        contestants[f"huai {streams}"] = partial(sync, streams)
        contestants[f"msrsync {streams}"] = partial(msrsync, streams)
    samples = take_turns(contestants, stand.rounds, stand.rest)
    title, peer = f"local copy of {files:,} empty files", "rsync -a"
    two = samples["huai 2"]
    yield Figure(f"{title}, 2 streams", wall(two), "s", peer, wall(samples["rsync"])), ""
    cpus = cpu(two), "s", peer, cpu(samples["rsync"])
    yield Figure(f"{title}, 2 streams, CPU of all processes", *cpus), ""
    for streams, speed in _STREAMS.items():
        ours, theirs = wall(samples[f"huai {streams}"]), wall(samples[f"msrsync {streams}"])
        peer = f"parallel rsync, x{wall(samples['rsync']) / theirs:.2f} of one"
        yield (
            Figure(f"{title}, streams: {streams}", ours, "s", peer, theirs),
            f"msrsync {speed} of rsync",
        )


def _large(stand: Stand) -> Iterator[Row]:
    """Yield the seconds of updates of a large file."""
    for case in list_cases(GIB):
        if case.name in _FOUND:
            for figure in measure_case(stand, case):
                ending, document = _FOUND[case.name]
                if figure.theirs is not None:
                    yield figure, document if figure.title.endswith(ending) else ""
    module = "founding-large"
    client, daemon = stand.first_client(module, make_large, GIB)
    url = f"http://127.0.0.1:{stand.server_port}"
    numbers = iter(range(10**6))

    def sync() -> Spent:
        dest = stand.folder / f"{module}-{next(numbers)}"
        dest.mkdir()
        options = "--upstream-name", module, "--content-url", daemon
        client.run("add", dest.name, url, dest, *options)
        return spend(client.command("sync", dest.name, "--quiet"))

    def rsync() -> Spent:
        return spend(["rsync", "-a", f"{daemon}/", f"{stand.folder / module}-{next(numbers)}/"])

    samples = take_turns({"huai": sync, "rsync": rsync}, stand.rounds, stand.rest)
    seconds = wall(samples["huai"]), "s", "rsync -a", wall(samples["rsync"])
    yield (
        Figure(f"first copy of a file of {show(GIB, 'B')}, every byte verified", *seconds),
        "yajsync: MD5 9.5 s, xxHash 4.3 s",
    )


def _size(stand: Stand) -> Iterator[Figure]:
    """Measure trees of all sizes up to that of the stand."""
    sizes = [each for each in _SIZES if each <= stand.entries] or [stand.entries]
    points: dict[str, Samples] = {}
    for entries in sizes:
        with MirroredTree(stand, f"size-{entries}", entries) as mirror:
            samples = mirror.measure(CHANGES / entries)
            samples[_NOTHING_NEW] = [mirror.run("sync") for _ in range(stand.rounds)]
            points[_SIZES.get(entries, f"{entries / 1e6:g}")] = samples
    title = f"The cost of an update of {CHANGES:,} files, by the size of the tree"
    return _plot(stand, "cost-by-size.svg", title, "million entries", points)


def _share(stand: Stand) -> Iterator[Figure]:
    """Measure one tree of which more and more changes."""
    entries = min(_SHARE_ENTRIES, stand.entries)
    with MirroredTree(stand, "share", entries) as mirror:
        points = {f"{share * 100:g}": mirror.measure(share) for share in _SHARES}
    title = f"The cost of an update of {entries:,} entries, by the share of files that changed"
    return _plot(stand, "cost-by-share.svg", title, "% of the files changed", points)


def _plot(
    stand: Stand, name: str, title: str, axis: str, points: Mapping[str, Samples]
) -> Iterator[Figure]:
    """Draw the samples of each tick, and yield them as figures."""
    panels = []
    whose = "all processes" if stand.processor else "the command"
    for panel, measure in (f"CPU time of {whose}", cpu), ("time on the clock", wall):
        lines = {
            line: [measure(samples[line]) for samples in points.values()]
            for line in next(iter(points.values()))
        }
        panels.append(Panel(panel, lines))
        for line in sorted(lines.keys() - {RSYNC}):
            for tick, ours, theirs in zip(points, lines[line], lines[RSYNC], strict=True):
                yield Figure(f"{tick} {axis}, {line}: {panel}", ours, "s", RSYNC, theirs)
    write_plot(stand.pages / name, title, axis, list(points), panels)


def _write_table(stand: Stand, rows: Sequence[Row]) -> None:
    """Write the rows with a founding figure, over the table of the page if there is a page."""
    circumstances = (
        f"{_MEASURED}{stand.entries:,} entries, medians of {stand.rounds}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}:"
    )
    lines = [circumstances, "", "| work | founding document | stock tool here | huai | ratio |"]
    lines.append("| --- " * 5 + "|")
    for figure, document in rows:
        if not document:
            continue
        theirs = f"{show(figure.theirs or 0, figure.unit)} {figure.peer}"
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2g}"
        ours = show(figure.ours, figure.unit)
        lines.append(f"| {figure.title} | {document} | {theirs} | {ours} | {ratio} |")
    table = "\n".join([*lines, ""])
    path = stand.pages / _PAGE
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    old = re.compile(rf"^{_MEASURED}.*\n\n(\|.*\n)+", re.MULTILINE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(old.sub(lambda _: table, page, count=1) or table, encoding="utf-8")


_TABLE: dict[str, Callable[[Stand], Iterator[Row]]] = {
    "reads": _reads,
    "streams": _streams,
    "large": _large,
}
_PLOTS: dict[str, Callable[[Stand], Iterator[Figure]]] = {"size": _size, "share": _share}
