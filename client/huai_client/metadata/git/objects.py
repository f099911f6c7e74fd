"""The interface through which `metadata.git` reads objects that are here already.

`Repository` implements it.
"""

from typing import NamedTuple, Protocol

from huai_schema.git.objects import Kind


class GitObject(NamedTuple):
    """An object of git."""

    kind: Kind
    data: bytes


class Objects(Protocol):
    """A repository, which may gain packs during its use.

    If it has `packs`, an engine's `Packs`, most objects are read from there directly.
    """

    def find(self, oid: bytes) -> GitObject | None:
        """Return an object by its id; None if it is not here.

        Raises `FormatError` if it is larger than `limits.OBJECT_BYTES`, before it is inflated.
        """
        ...

    def __contains__(self, oid: bytes) -> bool:
        """Return True if an object is here, without reading it."""
        ...
