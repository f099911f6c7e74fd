"""A first sync of small files, compared with `rsync -aH` from the same daemon.

Files of this machine, of at most 64 KiB; a tree that is mostly directories; and a single directory,
both of a size that follows `--entries`: 3,000,000 make them as large as real mirrors have them.
Then a first sync of files of 10 bytes to 3 kB, a fifteenth as many directories, in bundles from
`serve`, compared with the same rsync.

Every round makes a fresh copy and deletes none: a large tree that was just deleted makes ext4 slow
for seconds.
"""

import os
from collections.abc import Iterator

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program
from tests.bench.spending import compare_clients, spend, take_turns
from tests.bench.stand import Stand

_DIRECTORIES, _ENTRIES, _CROWD = 0.1, 0.27, 1 / 3
"""Shares of `--entries`."""
_CROWD_BYTES = 32
_FILES_OF_DIRECTORY = 15


def figures(stand: Stand) -> Iterator[Figure]:
    """For each tree the whole process, its CPU time, its memory."""
    directories, entries, crowd = (
        round(stand.entries * each) for each in (_DIRECTORIES, _ENTRIES, _CROWD)
    )
    few = f"{entries:,} entries, {directories:,} of them directories"
    for module, title, maker, arguments in (
        ("first-real", f"{trees.REAL_FILES:,} real files", trees.copy_real, (trees.REAL_FILES,)),
        ("first-directories", few, trees.make_directories, (directories, entries)),
        (
            "first-crowd",
            f"{crowd:,} files in one directory",
            trees.make_crowd,
            (crowd, _CROWD_BYTES),
        ),
    ):
        client, daemon = stand.first_client(module, maker, *arguments)
        goal = (1.0, "as fast") if stand.line else (1.1, "1.1 times")
        contents = daemon, daemon
        yield from _first(stand, module, title, client, contents, Goal(*goal, ratio=True))
    folders = max(1, stand.entries // _FILES_OF_DIRECTORY)
    client, daemon = stand.first_client(
        "first-bundles", trees.make_small_files, stand.entries, folders, served=True
    )
    title = f"{stand.entries:,} files in {folders:,} directories by bundles"
    bundles = f"http://127.0.0.1:{stand.port}/content/first-bundles/"
    goal = (0.8, "0.8 times") if stand.line else (0.5, "half")
    contents = bundles, daemon
    yield from _first(stand, "first-bundles", title, client, contents, Goal(*goal, ratio=True))


def _first(
    stand: Stand, module: str, title: str, client: Program, contents: tuple[str, str], goal: Goal
) -> Iterator[Figure]:
    """Measure ours from the first URL of `contents`, rsync from the second."""
    content, daemon = contents
    numbers = {"huai": 0, "rsync": 0}

    def fresh(name: str) -> str:
        numbers[name] += 1
        dest = stand.folder / f"{module}-{name}-{numbers[name]}"
        dest.mkdir()
        return os.fspath(dest)

    samples = take_turns(
        {
            "huai": lambda: spend(_sync(stand, client, module, content, fresh("huai"))),
            "rsync": lambda: spend(["rsync", "-aH", f"{daemon}/", fresh("rsync")]),
        },
        stand.rounds,
        stand.rest,
    )
    ours, theirs, peer = samples["huai"], samples["rsync"], "rsync -aH"
    yield from compare_clients(f"first sync of {title}", ours, peer, theirs, goal)


def _sync(stand: Stand, client: Program, module: str, content: str, dest: str) -> list[str]:
    """The command that fills `dest`."""
    name, url = os.path.basename(dest), f"http://127.0.0.1:{stand.port}"
    client.run(*("add", name, url, dest, "--upstream-name", module, "--content-url", content))
    return client.command("sync", name, "--quiet")
