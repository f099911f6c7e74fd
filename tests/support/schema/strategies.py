"""Hypothesis strategies for entries and small trees."""

from random import Random

from hypothesis import strategies as st

from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import ROOT, RelPath, join
from tests.support.schema.trees import ODD, Tree, settle_links

MTIME_MAX = SIZE_MAX = (1 << 63) - 1


class Seeded(Random):
    """Shows its seed, with which a failure can be made again."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def __repr__(self) -> str:
        return f"Seeded({self._seed})"


RANDOMS = st.integers(0, 1 << 32).map(Seeded)
NAMES = st.one_of(
    st.binary(min_size=1, max_size=6),
    st.lists(st.sampled_from(ODD), min_size=1, max_size=5).map(bytes),
).filter(
    lambda name: (
        name not in (b".", b"..") and not set(name) & {0, 0x2F} and name.lower() != b".~tmp~"
    )
)
OWNERS = st.one_of(
    st.just(b"root"), st.binary(min_size=1, max_size=8).filter(lambda raw: b"\0" not in raw)
)
MTIMES = st.one_of(st.integers(-MTIME_MAX, MTIME_MAX), st.integers(-3, 3).map(lambda n: n * 10**9))
MODES = st.one_of(st.sampled_from([0, 0o644, 0o755, 0o777]), st.integers(0, 0o7777))
DIGESTS = st.one_of(st.none(), st.binary(min_size=32, max_size=32).filter(any))
SIZES = st.integers(0, SIZE_MAX)
TARGETS = st.binary(min_size=1, max_size=20).filter(lambda raw: b"\0" not in raw)


@st.composite
def leaves(draw: st.DrawFn, path: RelPath) -> File | Symlink:
    if draw(st.booleans()):
        numbers = draw(TARGETS), draw(MTIMES), draw(MODES)
        return Symlink(path, *numbers, draw(OWNERS), draw(OWNERS))
    numbers_of_file = draw(SIZES), draw(MTIMES), draw(MODES)
    digest = draw(DIGESTS)
    return File(path, *numbers_of_file, draw(OWNERS), draw(OWNERS), digest=digest)


@st.composite
def directories(draw: st.DrawFn, path: RelPath) -> Directory:
    return Directory(path, draw(MTIMES), draw(MODES), draw(OWNERS), draw(OWNERS))


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A few entries, deep rather than many; some hardlinks."""
    tree: Tree = {ROOT: draw(directories(ROOT))}
    below = [ROOT]
    for _ in range(draw(st.integers(0, 12))):
        path = join(draw(st.sampled_from(below)), draw(NAMES))
        if path in tree:
            continue
        if draw(st.booleans()):
            tree[path] = draw(directories(path))
            below.append(path)
            continue
        leaf = draw(leaves(path))
        if isinstance(leaf, File) and draw(st.booleans()):
            leaf = leaf._replace(link=draw(st.sampled_from(sorted(tree))))
        tree[path] = leaf
    settle_links(tree)
    return tree
