"""Fetches the file with which a source says where its metadata are.

By the real rsync, with the options of the call that say how to get there; so it asks whom the
call asks, with the same login, through the same proxy.
"""

import tempfile
from pathlib import Path

from huai_client.cli.rsync import exec_rsync as handover
from huai_client.cli.rsync.exec_rsync import RsyncNeededError
from huai_client.cli.rsync.request import RsyncRequest
from huai_schema.codec.announcement import BYTES_MAX, FILE_NAME
from huai_schema.errors import FormatError

_ABSENT = 23
"""rsync's exit code where the source has no such file."""


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
