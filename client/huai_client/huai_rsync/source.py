"""Where a call of rsync wants to copy from: an rsync daemon's module or a folder in it.

Pure.  Two spellings of one place are equal values: `HOST::MODULE` and `rsync://HOST:873/MODULE/`.
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
    """A folder that an rsync daemon serves, and of which the content is meant."""

    host: str
    path: str
    """The daemon's module and what follows, without slashes at the ends."""
    port: int = _PORT
    user: str = ""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read rsync's source argument; None: another kind of source, or a single file."""
        url = _URL.fullmatch(text)
        found = url or _COLONS.fullmatch(text)
        if found is None:
            return None
        path = found["path"].rstrip("/")
        parts = path.split("/")
        plain = _PLAIN.fullmatch(path) and not {"", ".", ".."}.intersection(parts)
        # Without a slash at its end a folder is copied itself, and a daemon's module is not.
        if not plain or path.startswith(("-", ":")) or (parts[1:] and found["path"][-1] != "/"):
            return None
        port = int(url["port"] or _PORT) if url else _PORT
        return cls(found["host"].lower(), path, port, found["user"] or "")

    def at_port(self, port: int) -> Self:
        """The same at another port, as `--port` says."""
        return replace(self, port=port)

    @property
    def name(self) -> str:
        """The last part of its path: what its module is most likely called."""
        return self.path.rpartition("/")[2]

    def same_place(self, other: "Source") -> bool:
        """Whether both are the same folder, whoever logs in."""
        return replace(self, user="") == replace(other, user="")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port != _PORT else ""
        return f"rsync://{user}{self.host}{port}/{self.path}"
