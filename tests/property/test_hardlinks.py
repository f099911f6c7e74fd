"""Names of one file, in any place: later ones point to the first, as in the oracle."""

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.lines import decode_leaves
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, parent
from tests.support.scanned import listings
from tests.support.schema.lines import link_field

NAMES = st.sampled_from([b"a", b"b", b"m\n", b"x\\y", b"z"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)


def trees(low: int, high: int) -> st.SearchStrategy[set[bytes]]:
    """Draw paths of files, none of which is a directory, too."""
    return st.sets(PATHS, min_size=low, max_size=high).filter(
        lambda paths: not any(one.startswith(other + b"/") for one in paths for other in paths)
    )


def tree_order(path: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """Return a key that sorts leaves before subdirectories."""
    return tuple(parent(RelPath(path)).split(b"/")) if b"/" in path else (), basename(path)


@given(trees(2, 5))
def test_every_later_name_points_to_the_first(paths: set[bytes]) -> None:
    first, *rest = sorted(paths, key=tree_order)
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in (first, *rest):
            place = os.path.join(os.fsencode(folder), path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if path == first:
                Path(os.fsdecode(place)).write_bytes(b"")
            else:
                os.link(os.path.join(os.fsencode(folder), first), place)
        for listing in listings(Path(folder)):
            for line in listing.leaves.splitlines(keepends=True):
                (entry,) = decode_leaves(listing.path, line)
                assert isinstance(entry, File)
                files[entry.path] = entry.link, line
    assert files.keys() == paths
    assert files[RelPath(first)][0] is None
    for path in rest:
        link, line = files[RelPath(path)]
        assert link == first
        assert line.endswith(link_field(path, first) + b"\n")
