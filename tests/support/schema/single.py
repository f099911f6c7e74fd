"""Objects that are read by themselves, whatever they say."""

from huai_native import _native
from huai_schema.codec.escaping import escape
from huai_schema.codec.listing import Listing
from huai_schema.git.objects import TreeItem, encode_tree
from huai_schema.layout.snapshot import OwnDirectory, Snapshot
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects

_OID = b"o" * 20


def read_own_directory(path: bytes, data: bytes) -> OwnDirectory:
    """The directory at `path` whose git tree is `data`."""
    objects = MemoryObjects()
    objects.objects[_OID] = "tree", data
    return OwnDirectory(*_native.read_own_directory(objects, path, _OID))


def read_manifest(text: bytes, column: bytes = b"", path: bytes = b"") -> list[Listing]:
    """The directories in the one manifest of the directory at `path`."""
    objects = MemoryObjects()
    items = [TreeItem(b"m", objects.write("blob", text), is_tree=False)]
    if column:
        items.append(TreeItem(b"d", objects.write("blob", column), is_tree=False))
    tree = objects.write("tree", encode_tree(items))
    steps = Snapshot(objects, tree).level(RelPath(path), tree)
    return [step for step in steps if isinstance(step, Listing)]


def manifest_text(listings: list[Listing]) -> bytes:
    """Return the text that `read_manifest` gets, for the module's own directory."""
    return b"".join(
        b"%b/\t%b\n%b" % (escape(each.path) or b".", each.attributes, each.leaves)
        for each in listings
    )
