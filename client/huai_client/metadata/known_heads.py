"""A memory of the heads of upstreams, by URL without a login.

The files are caches.  Without
`STATIC` the whole head is requested; the detail is the head's ETag.
Without `REFUSED` a commit is fetched and judged again; the detail is the exit code of the refusal
and its reason.  Where that depends on more than the pack, a fingerprint follows the URL.
"""

import math
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from huai_program.record_file import RecordFile

STATIC, REFUSED = "static-heads", "refused-heads"
_MOST = 64
_DETAIL_MOST = 1000


class KnownHead(Struct, frozen=True):
    """The newest commit of an upstream as last seen, with its ETag or why it was refused."""

    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40}$")]
    detail: str
    """The head's ETag, empty if the server sends none, or the reason of the refusal."""


_FILE = RecordFile(dict[str, KnownHead], needed=False)


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
        """Return the remembered head of the repository at `url`; None without a recent one."""
        return self._read().get(url)

    def set(self, url: str, head: KnownHead) -> None:
        """Remember `head` as the latest of at most 64; that of `url` before is forgotten.

        One with too long a detail is not remembered; a failure to write is ignored.
        """
        heads = self._read()
        if heads.pop(url, None) != head and len(head.detail) <= _DETAIL_MOST:
            self._write({url: head, **heads})

    def forget(self, url: str) -> None:
        """Drop the remembered head of `url`."""
        heads = self._read()
        if heads.pop(url, None) is not None:
            self._write(heads)

    def _read(self) -> dict[str, KnownHead]:
        """Read the file; nothing if it is missing, damaged or too old."""
        try:
            if time.time() - self._path.stat().st_mtime > self._lasts:
                return {}
        except OSError:
            return {}
        return _FILE.load(self._path) or {}

    def _write(self, heads: dict[str, KnownHead]) -> None:
        """Write the latest 64 of `heads`; a failure is ignored."""
        with suppress(OSError, UnicodeError):
            _FILE.save(self._path, dict(islice(heads.items(), _MOST)))
