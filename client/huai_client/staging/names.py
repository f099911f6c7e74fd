"""How the staging area names what belongs to a path of the tree."""

from hashlib import blake2b


def hashed(path: bytes) -> bytes:
    """A name for `path` in a flat folder, where no shape of the tree stands in its way."""
    return blake2b(path, digest_size=20).hexdigest().encode()
