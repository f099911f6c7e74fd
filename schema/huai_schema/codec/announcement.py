"""The file at the top of a tree that gives the URL of its metadata (FORMAT.md, "Announcement").

Pure.  Whatever can write the file can write the tree, so it is trusted as much as the content that
the same daemon serves, and no more.
"""

import re
from typing import Final, NamedTuple, Self

from huai_schema.codec.module_name import check_module
from huai_schema.errors import FormatError

FILE_NAME: Final = "huai-upstream"
BYTES_MAX: Final = 4096
_HEAD = "huai-upstream 1"
_LINE = re.compile(r"([a-z][a-z0-9-]*) ([\x20-\x7e]+)")
_URL = re.compile(r"https?://[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]*(/[!-?A-~]*)?")
"""Without a login: the file is public."""


class Announcement(NamedTuple):
    """The location of a module's metadata."""

    url: str
    """The base URL of a huai server, or the URL of the repository itself."""
    module: str

    @classmethod
    def of(cls, url: str, module: str) -> Self:
        """Return the announcement of both values; raises `FormatError` if a value is not valid."""
        if _URL.fullmatch(url) is None or len(url) > BYTES_MAX // 2:
            raise FormatError(
                f"{url[:200]!r} is not a URL of metadata "
                "(http:// or https://, a host, perhaps a port and a path, no login)"
            )
        return cls(url, check_module(module))

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the content of the file; raises `FormatError` if it is malformed or too long.

        Unknown lines are skipped, as later versions may have more.  Of repeated lines the first
        counts.
        """
        if len(text) > BYTES_MAX:
            raise FormatError(f"{FILE_NAME}: more than {BYTES_MAX} bytes")
        head, *lines = text.decode("utf-8", "replace").split("\n")
        if head != _HEAD:
            raise FormatError(f"{FILE_NAME}: does not begin with {_HEAD!r}")
        matches = [match for match in map(_LINE.fullmatch, lines) if match]
        values = {match[1]: match[2] for match in reversed(matches)}
        missing = [key for key in ("url", "module") if key not in values]
        if missing:
            raise FormatError(f"{FILE_NAME}: the line {missing[0]!r} is missing")
        return cls.of(values["url"], values["module"])

    def encode(self) -> bytes:
        """Return the content of the file."""
        return f"{_HEAD}\nurl {self.url}\nmodule {self.module}\n".encode()
