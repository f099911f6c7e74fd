"""Which upstreams have static files, and what their heads said last.

A line each: the commit, the URL without its login, the head's ETag.  Of no weight: without it an
upstream is asked by git's protocol first, and for the whole head.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_schema.program.durable import replace_file

_FILE = "static-heads"
_LINES = 64
_LINE = re.compile("([0-9a-f]{40})\t([^\t\n]{1,4000})\t([!-~]{0,1000})")


class KnownHead(NamedTuple):
    """What a head said."""

    commit: str
    etag: str
    """Empty: its server tells none."""


class KnownHeads:
    """Of one module, in the folder of its metadata."""

    def __init__(self, repository: Path) -> None:
        """Reads nothing yet."""
        self._path = repository / _FILE

    def get(self, url: str) -> KnownHead | None:
        """What the head of the repository at `url` said; None: it is not known to have one."""
        return self._read().get(url)

    def set(self, url: str, head: KnownHead) -> None:
        """Remember it, if that is possible."""
        known = self._read()
        if known.get(url) != head and _LINE.fullmatch(_line(url, head)):
            self._write({url: head, **{each: known[each] for each in known if each != url}})

    def forget(self, url: str) -> None:
        """There is none any more."""
        known = self._read()
        if known.pop(url, None) is not None:
            self._write(known)

    def _read(self) -> dict[str, KnownHead]:
        try:
            lines = self._path.read_text("ascii", "replace").splitlines()
        except OSError:
            return {}
        found = [match for match in map(_LINE.fullmatch, lines) if match]
        return {match[2]: KnownHead(match[1], match[3]) for match in found}

    def _write(self, known: dict[str, KnownHead]) -> None:
        lines = [_line(url, head) for url, head in known.items()][:_LINES]
        text = "".join(f"{line}\n" for line in lines)
        with suppress(OSError, UnicodeError):
            replace_file(self._path, text.encode("ascii"), self._path.with_suffix(".lock"))


def _line(url: str, head: KnownHead) -> str:
    return f"{head.commit}\t{url}\t{head.etag}"
