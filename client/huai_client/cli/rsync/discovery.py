"""Upstreams that nobody configured: does the source itself say where its metadata are?

By a file at its top, which the real rsync fetches from the very daemon and folder that the call
names, with the options of the call that say how to get there: so it asks whom the call asks, with
the same login, through the same proxy, and whoever can write the file can write the content as
well.  Asked at most once a day for each source that has none, or one that leads nowhere; "no" is
remembered in a file below the client's root.  Rule to keep: what is found here is believed only
when its metadata name the very source of the call; it is written into client.toml then, and said.
"""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from huai_client.cli.rsync import exec_rsync as handover
from huai_client.cli.rsync.eligibility import modes_of
from huai_client.cli.rsync.environment import DISCOVER, UPSTREAM
from huai_client.cli.rsync.exec_rsync import RsyncNeededError
from huai_client.cli.rsync.request import RsyncRequest
from huai_client.config import ClientConfig, Module
from huai_client.metadata.http import MetadataUrl, UpstreamError, newest_commit
from huai_client.state.paths import module_places
from huai_client.state.state import StateError, replace_durably
from huai_schema.codec.announcement import BYTES_MAX, FILE_NAME, Announcement
from huai_schema.errors import FormatError

_TIMEOUT_SECONDS = 3
_PATIENCE_SECONDS = 86_400
_MAX_AGE = "7d"
_MEMORY = "rsync-sources.json"
_ABSENT = 23
"""rsync's exit code where the source has no such file."""


def discover(request: RsyncRequest, root: Path, config: ClientConfig) -> tuple[str, Module]:
    """The module that `request` would be if its source says so; not written yet.

    Only for a tree that is there: at a first copy the real rsync is faster.  Raises
    `RsyncNeededError`.
    """
    if os.environ.get(DISCOVER) == "no":
        raise RsyncNeededError("no module has this destination")
    if _is_empty(request.dest):
        raise RsyncNeededError("no module has this destination, and it holds nothing yet")
    if _refused(root).get(str(request.source), 0) + _PATIENCE_SECONDS > time.time():
        raise RsyncNeededError("no module has this destination, and the source was no upstream")
    try:
        url, name = _announced(request)
        newest_commit(MetadataUrl.of(url, name), timeout=_TIMEOUT_SECONDS)
    except (FormatError, UpstreamError) as error:
        refuse(request, root)
        raise RsyncNeededError(f"no module has this destination; {error.message}") from error
    here = _free(name, root, config)
    dest = os.path.abspath(request.dest)
    other = name if here != name else ""
    return here, Module(
        url=url,
        dest=dest,
        upstream_name=other,
        max_age=_MAX_AGE,
        owners=request.owners,
        modes=modes_of(request),
        safe_links=request.safe_links,
    )


def _announced(request: RsyncRequest) -> Announcement:
    """What the administrator says, or else the source."""
    given = os.environ.get(UPSTREAM)
    if given:
        return Announcement.of(given, request.source.name)
    return Announcement.parse(fetch_announcement(request, _TIMEOUT_SECONDS))


def refuse(request: RsyncRequest, root: Path) -> None:
    """Remember that the source of `request` is no upstream; best effort."""
    now = int(time.time())
    kept = {key: at for key, at in _refused(root).items() if at + _PATIENCE_SECONDS > now}
    with suppress(OSError, StateError):
        root.mkdir(parents=True, exist_ok=True)
        replace_durably(root / _MEMORY, msgspec.json.encode({**kept, str(request.source): now}))


def _refused(root: Path) -> dict[str, int]:
    """Sources that are no upstreams, each with when that was found."""
    try:
        return msgspec.json.decode((root / _MEMORY).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _is_empty(dest: str) -> bool:
    try:
        with os.scandir(dest) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def _free(name: str, root: Path, config: ClientConfig) -> str:
    """A name that no module has, and none has left its state behind."""
    found, number = name, 1
    while found in config.modules or module_places(root, found).state.exists():
        number += 1
        found = f"{name}-{number}"
    return found


def fetch_announcement(request: RsyncRequest, timeout: int) -> bytes:
    """The file; `FormatError` if there is none.

    `timeout` (s) is for each wait.  Raises `RsyncNeededError` if the daemon cannot be asked now,
    which says nothing of the file.
    """
    with tempfile.TemporaryDirectory(prefix="huai-rsync-") as folder:
        code = handover.beside(
            [
                *(*request.rsync_options, "--no-motd", f"--max-size={BYTES_MAX}"),
                *(f"--timeout={timeout}", *_contimeout(request, timeout)),
                *("--", f"{request.source}/{FILE_NAME}", f"{folder}/"),
            ],
            silent=True,
        )
        path = Path(folder, FILE_NAME)
        if code == 0 and path.is_file():
            return path.read_bytes()
        if code in (0, _ABSENT):
            raise FormatError(f"{request.source} has no file {FILE_NAME}")
        raise RsyncNeededError(
            f"{request.source} cannot be asked for {FILE_NAME} (rsync ended with {code})"
        )


def _contimeout(request: RsyncRequest, timeout: int) -> list[str]:
    """How long to wait for a connection; an error for rsync where a remote shell makes it."""
    behind_shell = any(option.startswith("--rsh=") for option in request.rsync_options)
    return [] if behind_shell else [f"--contimeout={timeout}"]
