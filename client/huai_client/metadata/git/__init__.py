"""Fetching a commit over HTTP in time proportional to what it changed.

Git's protocol, its packs and deltas as far as a mirror needs them: libgit2 takes time that
grows with the square of the number of changed manifests.  `Fetch` is what there
is to call; nothing below here knows pygit2.
"""

from huai_client.metadata.git.fetch import Fetch, LocalRepository, write_shallow
from huai_client.metadata.git.objects import GitObject, MissingObjectError, Objects

__all__ = [
    "Fetch",
    "GitObject",
    "LocalRepository",
    "MissingObjectError",
    "Objects",
    "write_shallow",
]
