"""The ids of git's objects, without the engine."""

from hashlib import sha1

from huai_schema.git.objects import Kind


def object_id(kind: Kind, data: bytes) -> bytes:
    """The id that git gives to this content."""
    return sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).digest()
