"""Listing hashes as FORMAT.md says, without the engine: nothing is remembered."""

from blake3 import blake3

from huai_schema.git.objects import ObjectReader


def listing_hash(tree: bytes, objects: ObjectReader) -> bytes:
    """Return the listing hash of a tree."""
    digests = b""
    rest = objects.read(tree, "tree")
    while rest:
        head, _, rest = rest.partition(b"\0")
        oid, rest = rest[:20], rest[20:]
        if head.startswith(b"40000 "):
            digests += head + b"\0" + listing_hash(oid, objects)
        else:
            digests += head + b"\0" + _of("blob", objects.read(oid, "blob"))
    return _of("tree", digests)


def _of(kind: str, content: bytes) -> bytes:
    return blake3(f"{kind} {len(content)}\0".encode() + content).digest()
