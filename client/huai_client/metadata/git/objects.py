"""The objects that are here already, as `metadata.git` needs them.

Only the interface; `Repository` implements it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from huai_native._native import ResolvedPack
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind


class MissingObjectError(FormatError):
    """The upstream relies on an object that is not here.

    It is wrong, or this side has lost what it says it has.
    """


class GitObject(NamedTuple):
    """An object."""

    kind: Kind
    data: bytes


class Objects(Protocol):
    """A repository, which may gain packs while this is in use.

    If it has `packs`, an engine's `Packs`, most objects are looked up there without asking it.
    """

    def find(self, oid: bytes) -> GitObject | None:
        """An object by its id, if it is here.

        `FormatError` if it is larger than `limits.OBJECT_BYTES`, before it is inflated.
        """
        ...

    def __contains__(self, oid: bytes) -> bool:
        """Whether an object is here, without reading it."""
        ...


class Packed(Objects, Protocol):
    """A repository of which packs are made."""

    def record(self, oid: bytes) -> bytes | None:
        """An object as a whole one stands in a pack; None if it is not here."""
        ...

    def chain(self, oid: bytes) -> Sequence[tuple[bytes, bytes]]:
        """Ids and records of an object that is here and of what it is made from, whole one last."""
        ...


class WithReceived:
    """A repository (`Objects`), and a pack that is not in it yet."""

    def __init__(self, received: ResolvedPack, objects: Objects) -> None:
        """Of the pack there are only the objects that name others to be had."""
        self.received = received
        """What the engine looks up by itself, as in `packs`."""
        self.packs = getattr(objects, "packs", None)
        self._objects = objects

    def find(self, oid: bytes) -> GitObject | None:
        """As `Objects` says."""
        found = self.received.find(oid)
        return GitObject(*found) if found else self._objects.find(oid)

    def __contains__(self, oid: bytes) -> bool:
        """As `Objects` says."""
        return oid in self.received or oid in self._objects
