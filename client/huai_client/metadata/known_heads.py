"""A memory of the heads of upstreams, by URL.

Each line has the commit, the URL without its login, and a detail.  The files are caches.  Without
`STATIC` the whole head is requested; the detail is the head's ETag.
Without `REFUSED` a commit is fetched and judged again; the detail is the exit code of the refusal
and its reason.  Where that depends on more than the pack, a fingerprint follows the URL.
"""

import math
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_program.durable import replace_file

STATIC, REFUSED = "static-heads", "refused-heads"
_LINES = 64
_LINE = re.compile("([0-9a-f]{40})\t([^\t\n]{1,4000})\t([ -~]{0,1000})")


class KnownHead(NamedTuple):
    """A remembered head."""

    commit: str
    detail: str
    """The head's ETag, empty if the server sends none, or the reason of the refusal."""


class KnownHeads:
    """The remembered heads of one module, in the folder of its metadata."""

    def __init__(self, repository: Path, file: str = STATIC, lasts: float = math.inf) -> None:
        """`file` is `STATIC` or `REFUSED`, valid for `lasts` seconds after its last change."""
        self._path = repository / file
        self._lasts = lasts

    @property
    def folder(self) -> Path:
        """The folder of the module's metadata."""
        return self._path.parent

    def get(self, url: str) -> KnownHead | None:
        """Return the remembered head of the repository at `url`, or None."""
        return self._read().get(url)

    def set(self, url: str, head: KnownHead) -> None:
        """Remember `head`; a failure to write is ignored."""
        heads = self._read()
        if heads.get(url) != head and _LINE.fullmatch(_line(url, head)):
            self._write({url: head, **{other: heads[other] for other in heads if other != url}})

    def forget(self, url: str) -> None:
        """Drop the remembered head of `url`."""
        heads = self._read()
        if heads.pop(url, None) is not None:
            self._write(heads)

    def _read(self) -> dict[str, KnownHead]:
        try:
            if time.time() - self._path.stat().st_mtime > self._lasts:
                return {}
            lines = self._path.read_text("ascii", "replace").splitlines()
        except OSError:
            return {}
        matches = [match for match in map(_LINE.fullmatch, lines) if match]
        return {match[2]: KnownHead(match[1], match[3]) for match in matches}

    def _write(self, heads: dict[str, KnownHead]) -> None:
        lines = [_line(url, head) for url, head in heads.items()][:_LINES]
        text = "".join(f"{line}\n" for line in lines)
        with suppress(OSError, UnicodeError):
            replace_file(self._path, text.encode("ascii"), self._path.with_suffix(".lock"))


def _line(url: str, head: KnownHead) -> str:
    return f"{head.commit}\t{url}\t{head.detail}"
