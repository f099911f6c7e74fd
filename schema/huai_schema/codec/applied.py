"""The record of a tree that `huai-client` keeps for other programs (docs/MIRRORS.md).

Pure.  Any bytes give a value or a `FormatError`, and a value has one spelling.
"""

import re
from typing import Final, NamedTuple, Self

from huai_schema.codec.escaping import escape, unescape
from huai_schema.errors import FormatError

FILE_NAME: Final = "applied"
"""In `ROOT/modules/NAME`, where `ROOT` is the client's state root."""
BYTES_MAX: Final = 8192
_REASON_MAX = 1000
_TEXT = rb"huai-applied 1\ncommit ([0-9a-f]{40})\nholds (?:all|part ([^\x00-\x1f\x7f]{1,7000}))\n"


class AppliedRecord(NamedTuple):
    """The commit to which a tree was brought."""

    commit: str
    """Hex id."""
    left_out: str
    """Words for the part of the commit that the tree lacks; empty if the tree is complete."""

    def encode(self) -> bytes:
        """Return the content of the file; a reason is cut at 1000 characters."""
        reason = escape(self.left_out[:_REASON_MAX].encode("utf-8", "surrogateescape"))
        holds = b"part " + reason if reason else b"all"
        return b"huai-applied 1\ncommit %b\nholds %b\n" % (self.commit.encode(), holds)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Parse the content of the file; raises `FormatError` if it is malformed."""
        match = re.fullmatch(_TEXT, data)
        if match is None:
            raise FormatError("is not the lines of an applied commit in their order", FILE_NAME)
        left_out = unescape(match[2] or b"").decode("utf-8", "surrogateescape")
        return cls(match[1].decode(), left_out)
