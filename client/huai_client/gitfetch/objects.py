"""The objects that are here already, as `gitfetch` needs them.

Only the interface; `store` has the implementation.
"""

from typing import NamedTuple, Protocol

from huai_schema.errors import FormatError
from huai_schema.gitobjects import Kind


class MissingObjectError(FormatError):
    """The upstream relies on an object that is not here.

    It is wrong, or this side has lost what it says it has.
    """


class Found(NamedTuple):
    """An object."""

    kind: Kind
    data: bytes


class Objects(Protocol):
    """A repository, which may gain packs while this is in use."""

    def find(self, oid: bytes) -> Found | None:
        """An object by its id, if it is here.

        `FormatError` if it is larger than `limits.OBJECT_BYTES`, before it is inflated.
        """
        ...

    def __contains__(self, oid: object) -> bool:
        """Whether an object is here, without reading it."""
        ...
