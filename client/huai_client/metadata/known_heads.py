"""A memory of the heads of upstreams, by URL.

A line each: the commit, the URL without its login, a detail.  Of no weight.  Without `STATIC` an
upstream is asked for the whole head; the detail is the head's ETag.
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
    """The ETag, empty if its server tells none, or the reason of the refusal."""


class KnownHeads:
    """Of one module, in the folder of its metadata."""

    def __init__(self, repository: Path, file: str = STATIC, lasts: float = math.inf) -> None:
        """Reads nothing yet; `file` is `STATIC` or `REFUSED`, good for `lasts` seconds."""
        self._path = repository / file
        self._lasts = lasts

    def get(self, url: str) -> KnownHead | None:
        """Return the remembered head of the repository at `url`."""
        return self._read().get(url)

    def set(self, url: str, head: KnownHead) -> None:
        """Remember it, if that is possible."""
        known = self._read()
        if known.get(url) != head and _LINE.fullmatch(_line(url, head)):
            self._write({url: head, **{each: known[each] for each in known if each != url}})

    def forget(self, url: str) -> None:
        """Drop what is known of that head."""
        known = self._read()
        if known.pop(url, None) is not None:
            self._write(known)

    def _read(self) -> dict[str, KnownHead]:
        try:
            if time.time() - self._path.stat().st_mtime > self._lasts:
                return {}
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
    return f"{head.commit}\t{url}\t{head.detail}"
