"""Commits of shards: the coordinator alone, one worker, and many where each `stat` waits.

`coordinator`: results of shards with as many entries as the stand has are made without a tree;
their directories are empty.  `worker`: CPU time of all processes.  `latency`: strace delays each
statx(2), so workers wait instead of computing, and need no cores; makes a plot.
"""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from huai_native._native import write_tree
from huai_program.engine.signs import RECORD
from huai_program.packs import opened_writer
from huai_schema.codec.listing import Listing
from huai_schema.paths import RelPath
from huai_server.actions import modules
from huai_server.commit.shard_record import SHARD_RECORD, ShardRecord, shard_key
from huai_server.commit.shard_scan import base_of
from huai_server.state.paths import module_places
from tests.bench.figures import Figure, Goal
from tests.bench.plot import Panel, write_plot
from tests.bench.programs import Program
from tests.bench.spending import Spent, cpu, spend, take_turns, wall
from tests.bench.stand import Stand

SHARDS, CHANGED = 500, 5
_NAME = "m"
_TIME = 1_600_000_000
_FILES = 400
"""The files of each made directory."""
_WORKERS = (1, 2, 4, 8)
_DELAY = 10_000
"""Microseconds."""
_DIRECTORIES = 64
_WAITING = 64 * 250
"""The entries of the tree that is scanned with delays."""
_PLOT = "time-by-workers.svg"


def figures(stand: Stand) -> Iterator[Figure]:
    """The chosen cases."""
    cases = {"coordinator": _coordinator, "worker": _worker, "latency": _latency}
    for name in stand.chosen(cases):
        yield from cases[name](stand)


def _coordinator(stand: Stand) -> Iterator[Figure]:
    """Measure a first commit of made results, and one of which few are new."""
    folder, share = stand.folder / "coordinator", stand.entries // SHARDS
    tree, results = folder / "tree", folder / "results"
    for number in range(SHARDS):
        (tree / f"{number:03}").mkdir(parents=True)
    server = _configured(folder / "state", tree, share + share // 2)
    entries = f"{stand.entries:,} entries"
    for title, count in ("first commit", SHARDS), (f"{CHANGED} of {SHARDS} changed", CHANGED):
        stand.make(partial(make_results, server.root, share, count), results)
        spent = spend(server.command("commit", _NAME, "--from-shards", results))
        name = f"{SHARDS} shards, {entries}, {title}, coordinator"
        goal = Goal(0.01, "<= 10 ms") if count == SHARDS else None
        yield Figure(f"{name}, CPU of a shard", spent.cpu / SHARDS, "s", goal=goal, rounds=1)
        goal = Goal(5, "<= 5 s") if count < SHARDS else None
        yield Figure(f"{name}, time on the clock", spent.wall, "s", goal=goal, rounds=1)
        memory = Goal(300 << 20, "<= 300 MiB")
        yield Figure(f"{name}, memory", spent.peak, "B", goal=memory, rounds=1)
    planned = spend(server.command("shards", _NAME))
    name = f"{SHARDS} shards, {entries}, plan of the next commit, CPU"
    yield Figure(name, planned.cpu, "s", rounds=1)
    shutil.rmtree(folder)


def make_results(state: Path, entries: int, changed: int, folder: Path) -> None:
    """Write the results of all shards, for the next commit; `changed` of them have new objects.

    An empty directory is scanned for its attributes, and made listings replace its own.
    """
    places = module_places(state, _NAME)
    past, _ = base_of(places, None)
    for number in range(SHARDS):
        path = b"%03d" % number
        record = modules.scan_shard(state, _NAME, path, None, folder)
        if number < changed or past is None:
            record = _filled(record, entries, number * 2 + (past is not None), folder)
        else:
            record = _filled(record, entries, None, folder)
            record = replace(record, tree=past.own_tree(RelPath(path)))
        SHARD_RECORD.save(folder / (shard_key(path) + RECORD), record)


def _filled(record: ShardRecord, entries: int, time: int | None, folder: Path) -> ShardRecord:
    """Return a record of so many entries, with its pack, and one file with another time.

    Without a `time` it has no pack.
    """
    directories = entries // _FILES
    lines = b"".join(b"f%04d\t%d\t%d\n" % (file, file, _TIME + file) for file in range(_FILES))
    totals = directories * _FILES, directories + 1, 0, directories * sum(range(_FILES))
    filled = replace(record, totals=totals, pack=None)
    if time is None:
        return filled
    first = lines.replace(b"f0000\t0\t%d" % _TIME, b"f0000\t0\t%d" % (_TIME + 1000 + time))
    attributes = b"%d" % _TIME

    def listings() -> Iterator[Listing]:
        yield Listing(RelPath(b""), attributes, b"")
        for number in range(directories):
            path = RelPath(b"d%05d" % number)
            yield Listing(path, attributes, lines if number else first)

    with opened_writer(folder, folder) as writer:
        tree = write_tree(listings(), writer)
        pack = writer.finish()
    return replace(filled, tree=tree, pack=os.fsdecode(pack) if pack else None)


def _worker(stand: Stand) -> Iterator[Figure]:
    """Compare a commit by one process of an engine with one without an engine."""
    folder = stand.folder / "worker"
    limit = stand.entries * 2 // 3  # as the default for three million
    numbers = iter(range(10**6))

    def committed(*engine: str) -> dict[str, Spent]:
        server = _configured(folder / str(next(numbers)), stand.tree, limit)
        command = server.command("commit", _NAME, *engine)
        return {title: stand.spend(command) for title in ("first commit", "nothing changed")}

    ways: dict[str, tuple[str, ...]] = {"one worker": ("--engine", "local://1"), "no engine": ()}
    samples: dict[str, list[dict[str, Spent]]] = {name: [] for name in ways}
    for number in range(stand.rounds):
        for name in ways if number % 2 == 0 else reversed(ways):
            stand.rest()
            samples[name].append(committed(*ways[name]))
    for title in samples["no engine"][0]:
        ours, theirs = (cpu([each[title] for each in samples[name]]) for name in ways)
        goal = Goal(1.05, "<= 1.05", ratio=True)
        name = f"{title} of {stand.entries:,} entries by one worker, CPU"
        yield Figure(name, ours, "s", "no engine", theirs, goal)
    shutil.rmtree(folder)


def _configured(state: Path, tree: Path, limit: int) -> Program:
    """Add a module whose directories are cut at `limit` entries."""
    server = Program("huai-server", state)
    server.run("add", _NAME, tree, "--digest", "off")
    with (state / "server.toml").open("a") as config:
        config.write(f"\n[modules.{_NAME}.engine]\nshard_entries = {limit}\n")
    return server


def _latency(stand: Stand) -> Iterator[Figure]:
    """Measure commits of an unchanged tree by 1 to 8 workers, and draw a plot."""
    tree = stand.folder / "waiting"
    stand.make(make_even_tree, tree)
    server = _configured(stand.folder / "latency", tree, _WAITING // _DIRECTORIES * 2)
    server.run("commit", _NAME)
    delay = f"inject=statx:delay_enter={_DELAY}"
    wait = ["strace", "-f", "-qq", "-o", os.devnull, "--seccomp-bpf", "-e", "trace=statx"]
    wait += ["-e", delay]

    def commit(workers: int) -> Spent:
        return spend([*wait, *server.command("commit", _NAME, "--engine", f"local://{workers}")])

    turns = {str(workers): partial(commit, workers) for workers in _WORKERS}
    samples = take_turns(turns, stand.rounds, stand.rest)
    seconds = [wall(samples[each]) for each in turns]
    for workers, spent in zip(turns, seconds, strict=True):
        title = f"{_DELAY / 1000:g} ms for each stat, {_WAITING:,} entries, {workers} workers"
        goal = Goal(1 / 7, "<= 1/7", ratio=True) if workers == str(_WORKERS[-1]) else None
        yield Figure(title, spent, "s", "1 worker", seconds[0], goal)
    title = f"The time of a commit of {_WAITING:,} unchanged entries, by the number of workers"
    lines = {"huai": seconds, "linear": [seconds[0] / workers for workers in _WORKERS]}
    write_plot(
        stand.pages / _PLOT, title, "workers", list(turns), [Panel("time on the clock", lines)]
    )


def make_even_tree(root: Path) -> None:
    """Make directories with equally many files."""
    for number in range(_DIRECTORIES):
        (root / f"{number:02}").mkdir(parents=True)
        for file in range(_WAITING // _DIRECTORIES):
            (root / f"{number:02}" / str(file)).touch()
