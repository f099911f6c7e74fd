"""Names of one file, wherever they are: later ones point to the first, as the oracle spells it."""

from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import HardlinkGroups
from huai_schema.codec.escaping import escape
from huai_schema.codec.lines import decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, parent
from huai_server.scan.types import IDENTITY
from tests.support.schema.lines import link_field

FIELDS = b"\t5\t1"
NAMES = st.sampled_from([b"a", b"b", b"m\n", b"x\\y", b"z"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)


def trees(low: int, high: int) -> st.SearchStrategy[set[bytes]]:
    """Paths of files: none of them is a directory, too."""
    return st.sets(PATHS, min_size=low, max_size=high).filter(
        lambda paths: not any(one.startswith(other + b"/") for one in paths for other in paths)
    )


def tree_order(path: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """Leaves come before subdirectories."""
    return tuple(parent(RelPath(path)).split(b"/")) if b"/" in path else (), basename(path)


def seen(path: bytes, digest: bytes = b"") -> tuple[Listing, bytes]:
    """A directory with this one file."""
    leaves = escape(basename(RelPath(path))) + FIELDS + b"\n"
    record = IDENTITY.pack(1, 2, 5, 1, 1, 9, 0, 0o644, 0, 0)
    return Listing(parent(RelPath(path)), b"1", leaves, digest), record


@given(trees(2, 5))
def test_every_later_name_points_to_the_first(paths: set[bytes]) -> None:
    groups = HardlinkGroups()
    first, *others = sorted(paths, key=tree_order)
    listing, record = seen(first)
    assert groups.resolve(listing, record, set()) is None
    assert groups.leads(first, FIELDS, b"")
    for path in others:
        listing, record = seen(path)
        leaves = groups.resolve(listing, record, set())
        assert leaves == listing.leaves[:-1] + link_field(path, first) + b"\n"
        (found,) = decode_leaves(listing.path, leaves)
        assert isinstance(found, File)
        assert (found.path, found.link) == (path, first)


@given(trees(3, 3))
def test_names_that_differ_or_are_not_sure_get_no_leader(paths: set[bytes]) -> None:
    groups = HardlinkGroups()
    first, second, third = sorted(paths, key=tree_order)
    groups.resolve(*seen(first, b"1" * 32), set())
    listing, record = seen(second, b"2" * 32)
    assert groups.resolve(listing, record, set()) is None
    listing, record = seen(third, bytes(32))
    assert groups.resolve(listing, record, {escape(basename(RelPath(third)))}) is None
    assert groups.resolve(listing, record, set()) is not None
    assert not groups.leads(first, b"\t6\t1", b"")
