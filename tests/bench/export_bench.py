"""Lists for other programs, from a commit and from the tree: run it with several `--entries`.

The peers walk the tree, whose metadata the kernel has in memory then; exports read the commit.
"""

from collections.abc import Iterator

from tests.bench import trees
from tests.bench.figures import Figure
from tests.bench.spending import Spent, spend
from tests.bench.stand import Stand

_MODULE = "lists"
_LIST = ["-printf", "%T@\\t%y\\t%s\\t%P\\n"]


def figures(stand: Stand) -> Iterator[Figure]:
    """Wall clock, CPU and memory of the first export, and of one with nothing new."""
    tree, out = stand.folder / _MODULE, stand.folder / "lists-out"
    stand.make(trees.make_tree, tree, stand.entries)
    out.mkdir()
    stand.server.run("add", _MODULE, tree, "--digest", "off")
    stand.server.run("commit", _MODULE)
    find = spend(["find", str(tree), *_LIST])
    gzip = "cd $0 && ls -lR | gzip --no-name"
    ls = spend(["bash", "-o", "pipefail", "-c", gzip, str(tree)])

    def export(dialect: str) -> Spent:
        return spend(stand.server.command("export", _MODULE, "--to", out, "--only", dialect))

    yield from _rows(stand, "fedora: three lists", export("fedora"), "find -printf", find)
    yield from _rows(stand, "fedora, nothing new", export("fedora"))
    yield from _rows(stand, "ls-lR.gz", export("ls-lR"), "ls -lR | gzip", ls)
    yield from _rows(stand, "ls-lR.gz, nothing new", export("ls-lR"))


def _rows(
    stand: Stand, what: str, ours: Spent, peer: str = "", theirs: Spent | None = None
) -> Iterator[Figure]:
    per_entry = f"{ours.cpu / stand.entries * 1e6:.1f} µs for each entry of the tree"
    yield Figure(what, ours.wall, "s", peer, theirs and theirs.wall)
    yield Figure(f"{what}, CPU", ours.cpu, "s", peer, theirs and theirs.cpu, None, per_entry)
    yield Figure(f"{what}, peak memory", ours.peak, "B", peer, theirs and theirs.peak)
