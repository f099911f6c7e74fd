"""A content URL as the configuration has it, with its rank among others.  Pure.

The words are those of RFC 5854 (`priority`, its range too) and RFC 2782 (a share is its weight).
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class ContentPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One element of `content_urls`; a text alone is its URL."""

    url: str
    priority: Annotated[int, Meta(ge=1, le=999_999)] = 1
    """Those of the lowest number are asked first, the others for what is missing then."""
    share: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """Of what is fetched, among those of equal priority; 0: none, but what others do not bring."""

    @classmethod
    def of(cls, given: "str | ContentPlace") -> "ContentPlace":
        """What `given` means."""
        return cls(given) if isinstance(given, str) else given
