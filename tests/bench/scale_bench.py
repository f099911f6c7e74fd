"""The cost of a tree of any size on both ends: run it with several `--entries` and compare.

Each step is done once.  A change is 2,000 files, however large the tree is.  Files are empty before
that, so that a commit with digests reads nothing but metadata.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program, serving
from tests.bench.spending import Spent, spend
from tests.bench.stand import Stand

_MODULE = "large"
_CHANGES = 2000
_LIST = ["-printf", "%P %s %T@ %m %U %G\\n"]


def figures(stand: Stand) -> Iterator[Figure]:
    """Wall clock, CPU and memory of each step, in the order of a mirror's life."""
    tree = stand.folder / _MODULE
    stand.make(trees.make_tree, tree, stand.entries)
    copy = stand.copy("downstream", tree)
    stand.server.run("add", _MODULE, tree, "--digest", "now")
    find = spend(["find", str(tree), *_LIST])
    yield from _rows(
        stand, "first commit", _commit(stand), "find -printf", find, entry_seconds=20e-6
    )
    yield from _rows(stand, "commit, nothing changed", _commit(stand), "find -printf", find)
    client = Program("huai-client", stand.folder / "large-client")
    with serving(stand.server) as port:
        daemon = stand.rsync_daemon(_MODULE, tree)
        url = f"http://127.0.0.1:{port}"
        client.run("add", _MODULE, url, copy, "--content-url", daemon)
        yield from _downstream(stand, client, tree, f"{daemon}/", copy)


def _downstream(
    stand: Stand, client: Program, tree: Path, daemon: str, copy: Path
) -> Iterator[Figure]:
    sync = client.command("sync", _MODULE, "--quiet")
    peer = "rsync -an --delete"
    rsync = ["rsync", "-an", "--delete", daemon, f"{copy}/"]
    yield from _rows(stand, "clone the metadata and adopt", spend(sync), peer, spend(rsync))
    yield from _rows(stand, "sync, nothing new", spend(sync))
    stand.make(trees.churn, tree, _CHANGES / stand.entries)
    yield from _rows(stand, f"commit of {_CHANGES:,} changes", _commit(stand))
    plan = spend(client.command("plan", _MODULE))
    yield from _rows(stand, f"plan of {_CHANGES:,} changes", plan)
    yield from _rows(stand, f"sync of {_CHANGES:,} changes", spend(sync), peer, spend(rsync))
    find = spend(["find", str(copy), *_LIST])
    verify = spend(client.command("verify", _MODULE))
    yield from _rows(stand, "verify without content", verify, "find -printf", find)


def _commit(stand: Stand) -> Spent:
    return spend(stand.server.command("commit", _MODULE))


def _rows(
    stand: Stand,
    title: str,
    ours: Spent,
    peer: str = "",
    theirs: Spent | None = None,
    *,
    entry_seconds: float | None = None,
) -> Iterator[Figure]:
    """Three rows; `each`: the goal, in seconds of CPU time for an entry."""
    goal = None
    if entry_seconds is not None:
        goal = Goal(entry_seconds * stand.entries, f"≤ {entry_seconds * 1e6:.0f} µs an entry")
    per_entry = f"{ours.cpu / stand.entries * 1e6:.1f} µs for each entry of the tree"
    yield Figure(title, ours.wall, "s", peer, theirs and theirs.wall)
    yield Figure(f"{title}, CPU", ours.cpu, "s", peer, theirs and theirs.cpu, goal, per_entry)
    yield Figure(f"{title}, peak memory", ours.peak, "B", peer, theirs and theirs.peak)
