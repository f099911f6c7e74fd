"""The discovery of the upstream of a source that is not configured, by its announcement.

The announcement is a file at the top of the source.  The real rsync fetches it, with the options of
the request that concern the connection: so it comes from the same daemon and folder, with the same
login and proxy, and those who can write it can write the content as well.  A source without one, or
with an invalid one, is tried again after a day; a file below the client's root records it.  Rule to
keep: an upstream is accepted only if its metadata name the source of the request; then it is
written into client.toml with a message.
"""

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from huai_client.config.load import ClientConfig, Module
from huai_client.huai_rsync import exec_rsync as handover
from huai_client.huai_rsync.eligibility import modes_of
from huai_client.huai_rsync.environment import DISCOVER, UPSTREAM
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.request import RsyncRequest
from huai_client.metadata.http import MetadataUrl, UpstreamError
from huai_client.metadata.newest import find_newest
from huai_client.state.paths import module_places
from huai_program.durations import Duration
from huai_program.record_file import RecordFile
from huai_schema.codec.announcement import BYTES_MAX, FILE_NAME, Announcement
from huai_schema.errors import FormatError

_TIMEOUT_SECONDS = 3
_PATIENCE_SECONDS = 86_400
_MAX_AGE = Duration("7d")
_MEMORY = "rsync-sources.json"
_REFUSED = RecordFile(dict[str, int], needed=False)
_ABSENT = 23
"""rsync's exit code if the source does not have the file."""


def discover(request: RsyncRequest, root: Path, config: ClientConfig) -> tuple[str, Module]:
    """Return name and settings of a new module for `request`, by its source's announcement.

    Only for an existing tree: for a first copy the real rsync is faster.  Runs rsync, and asks the
    upstream; adds no module.  Raises `RsyncNeededError` if huai cannot mirror the source, and
    records one that is not an upstream: it is not asked again for a day.
    """
    if os.environ.get(DISCOVER) == "no":
        raise RsyncNeededError("no module has this destination")
    if _is_empty(request.dest):
        raise RsyncNeededError("no module has this destination, and it is empty")
    if _refused(root).get(str(request.source), 0) + _PATIENCE_SECONDS > time.time():
        raise RsyncNeededError("no module has this destination, and the source is not an upstream")
    try:
        url, name = _announced(request)
        find_newest(MetadataUrl.of(url, name), timeout=_TIMEOUT_SECONDS)
    except (FormatError, UpstreamError) as error:
        record_refusal(request, root)
        raise RsyncNeededError(f"no module has this destination; {error.message}") from error
    name_here = _free(name, root, config)
    dest = os.path.realpath(request.dest)
    other = name if name_here != name else ""
    return name_here, Module(
        url=url,
        dest=dest,
        upstream_name=other,
        max_age=_MAX_AGE,
        owners=request.owners,
        modes=modes_of(request),
        safe_links=request.safe_links,
    )


def _announced(request: RsyncRequest) -> Announcement:
    """Return the announcement in the environment variable, or that of the source.

    Raises `FormatError` without one or for a malformed one, `RsyncNeededError` if the daemon does
    not respond.
    """
    address = os.environ.get(UPSTREAM)
    if address:
        return Announcement.of(address, request.source.name)
    return Announcement.parse(fetch_announcement(request, _TIMEOUT_SECONDS))


def record_refusal(request: RsyncRequest, root: Path) -> None:
    """Record that the source of `request` is not an upstream; best effort."""
    now = int(time.time())
    current = {key: at for key, at in _refused(root).items() if at + _PATIENCE_SECONDS > now}
    with suppress(OSError):
        root.mkdir(parents=True, exist_ok=True)
        _REFUSED.save(root / _MEMORY, {**current, str(request.source): now})


def _refused(root: Path) -> dict[str, int]:
    """Return the sources that are not upstreams, with the times of their discovery."""
    return _REFUSED.load(root / _MEMORY) or {}


def _is_empty(dest: str) -> bool:
    """Return True if a folder is empty, missing or unreadable."""
    try:
        with os.scandir(dest) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def _free(name: str, root: Path, config: ClientConfig) -> str:
    """Return a name without a module, and without the state of a former one."""
    candidate, number = name, 1
    while candidate in config.modules or module_places(root, candidate).state.exists():
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def fetch_announcement(request: RsyncRequest, timeout: int) -> bytes:
    """Fetch the announcement; raises `FormatError` if the source does not have the file.

    `timeout` (s) is for each wait.  Raises `RsyncNeededError` if the daemon does not respond.
    """
    with tempfile.TemporaryDirectory(prefix="huai-rsync-") as folder:
        code = handover.run_rsync(
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
            f"{FILE_NAME} cannot be fetched from {request.source} (rsync ended with {code})"
        )


def _contimeout(request: RsyncRequest, timeout: int) -> list[str]:
    """Return the option for the connection's time-out; none with a remote shell."""
    behind_shell = any(option.startswith("--rsh=") for option in request.rsync_options)
    return [] if behind_shell else [f"--contimeout={timeout}"]
