"""A content URL of the configuration, with its rank among others.  Pure.

The words are those of RFC 5854 (`priority`, its range too) and RFC 2782 (a share is its weight).
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class ContentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An element of `content_urls`; a plain text is its URL."""

    url: str
    priority: Annotated[int, Meta(ge=1, le=999_999)] = 1
    """The rank: the lowest numbers are used first, the others for what is missing then."""
    share: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """The weight among URLs of equal priority; 0 for files that the others do not deliver."""

    @classmethod
    def of(cls, element: "str | ContentPlace") -> "ContentPlace":
        """Convert an element of `content_urls`."""
        return cls(element) if isinstance(element, str) else element
