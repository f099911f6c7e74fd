"""Names of files in the staging area that belong to a path of the tree."""

from hashlib import blake2b


def hashed(path: bytes) -> bytes:
    """Return a name for `path` in a flat folder, independent of the shape of the tree."""
    return blake2b(path, digest_size=20).hexdigest().encode()
