"""The interface through which `metadata.git` reads objects that are here already.

`Repository` implements it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from huai_native._native import ResolvedPack
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind


class MissingObjectError(FormatError):
    """The upstream builds on an object that is missing here.

    Either it is wrong, or the client has lost an object that it offered.
    """


class GitObject(NamedTuple):
    """An object of git."""

    kind: Kind
    data: bytes


class Objects(Protocol):
    """A repository, which may gain packs during its use.

    If it has `packs`, an engine's `Packs`, most objects are read from there directly.
    """

    def find(self, oid: bytes) -> GitObject | None:
        """Return an object by its id, if it is here.

        `FormatError` if it is larger than `limits.OBJECT_BYTES`, before it is inflated.
        """
        ...

    def __contains__(self, oid: bytes) -> bool:
        """Return True if an object is here, without reading it."""
        ...


class Packed(Objects, Protocol):
    """A repository from whose packs new ones are made."""

    def record(self, oid: bytes) -> bytes | None:
        """Return the record of a whole object in a pack; None if the object is missing."""
        ...

    def chain(self, oid: bytes) -> Sequence[tuple[bytes, bytes]]:
        """Return ids and records of an object that is here and of its bases, the whole one last."""
        ...


class WithReceived:
    """A repository (`Objects`), and a received pack that is not in it yet."""

    def __init__(self, received: ResolvedPack, objects: Objects) -> None:
        """Only commits and trees of the pack can be read."""
        self.received = received
        """Read by the engine directly, as `packs` is."""
        self.packs = getattr(objects, "packs", None)
        self._objects = objects

    def find(self, oid: bytes) -> GitObject | None:
        """Return an object of the pack or of the repository."""
        item = self.received.find(oid)
        return GitObject(*item) if item else self._objects.find(oid)

    def __contains__(self, oid: bytes) -> bool:
        """Return True if an object is in the pack or in the repository."""
        return oid in self.received or oid in self._objects
