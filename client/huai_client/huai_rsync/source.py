"""The source of a call of rsync: an rsync daemon's module or a folder in it.

Pure.  Two spellings of a source are equal values: `HOST::MODULE` and `rsync://HOST:873/MODULE/`.
"""

import re
from dataclasses import dataclass, replace
from typing import Self

_PORT = 873
_USER = r"(?:(?P<user>[^@/:]+)@)?"
_HOST = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
_URL = re.compile(rf"rsync://{_USER}{_HOST}(?::(?P<port>[0-9]{{1,5}}))?/(?P<path>.+)")
_COLONS = re.compile(rf"{_USER}{_HOST}::(?P<path>.+)")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f*?\[\]\\]+")


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of an rsync daemon whose content is copied."""

    host: str
    path: str
    """The daemon's module and the path in it, without slashes at the ends."""
    port: int = _PORT
    user: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse rsync's source argument; None for another kind of source, or a single file."""
        url = _URL.fullmatch(text)
        match = url or _COLONS.fullmatch(text)
        if match is None:
            return None
        path = match["path"].rstrip("/")
        parts = path.split("/")
        plain = _PLAIN.fullmatch(path) and not {"", ".", ".."}.intersection(parts)
        # Without a trailing slash rsync copies the folder itself, except for a daemon's module.
        if not plain or path.startswith(("-", ":")) or (parts[1:] and match["path"][-1] != "/"):
            return None
        port = int(url["port"] or _PORT) if url else _PORT
        return cls(match["host"].lower(), path, port, match["user"] or "")

    def at_port(self, port: int) -> Self:
        """Return the same source at another port, as of `--port`."""
        return replace(self, port=port)

    @property
    def name(self) -> str:
        """The last part of its path: the likely name of its module."""
        return self.path.rpartition("/")[2]

    def same_place(self, other: "Source") -> bool:
        """Return True if both are the same folder, for any user."""
        return replace(self, user="") == replace(other, user="")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port != _PORT else ""
        return f"rsync://{user}{self.host}{port}/{self.path}"
