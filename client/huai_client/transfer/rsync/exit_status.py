"""Turns the exit code and output of rsync into an error (rsync(1), "EXIT VALUES").

Pure.
"""

import re

from huai_client.config.proxies import Proxy
from huai_client.transfer.errors import (
    RETRY_HINT,
    ConnectionBrokenError,
    DiskFullError,
    DroppedError,
    LocalWriteError,
    NameRefusedError,
    OptionRefusedError,
    TransferError,
    UnansweredError,
    UnreachableError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.rsync.arguments import OPTIONAL
from huai_client.transfer.rsync.output import RsyncOutput
from huai_client.transfer.urls import ContentUrl
from huai_schema.errors import HuaiError

_DONE = frozenset({0, 23, 24})
_SILENT = frozenset({30, 35})
_FILE_IO = 11
_BROKEN = frozenset({5, 10, 12, 14, 19, 20, 21, 22, 255})
_NOT_CONNECTED = re.compile("failed to connect to|getaddrinfo|proxy|ssh: (?:connect|Could not)")
"""A part of rsync's message about a socket that it could not connect."""
_LOGIN = (
    "content_urls in client.toml with USER@, and rsync_options with --password-file=FILE: "
    "a URL that the upstream names gets no password"
)
_UNSUPPORTED = 4
_SHELL_COMMAND = frozenset({126, 127})


def classify_exit(
    code: int, output: RsyncOutput, url: ContentUrl, proxy: Proxy | None = None
) -> HuaiError | None:
    """Return the error for the exit code (negative for a signal) and the output of a run.

    None if the run ended normally, and files that did not arrive are missing upstream.  `proxy`:
    the one that rsync connects to.
    """
    if output.too_much:
        return UpstreamRefusedError(
            f"{url}: sends more data than the metadata announce",
            hint="check that the content URL is that of this module; nothing was published from it",
        )
    if output.no_room or output.unwritable or code == _FILE_IO:
        return _local_error(output)
    if code in _DONE:
        return None
    if output.trickles:
        kind = UpstreamSilentError if output.progress else UnansweredError
        message = "sends too slowly" if output.progress else "does not answer, or sends too slowly"
        return kind(f"{url}: {message}", hint=RETRY_HINT)
    reason = f"{output.summary()} (rsync exit {code})"
    if proxy is not None and code in _BROKEN and _NOT_CONNECTED.search(reason):
        return UnreachableError(f"{url}: {proxy}: {reason}", hint=proxy.hint)
    return _upstream_error(code, output, f"{url}: {reason}")


def _local_error(output: RsyncOutput) -> LocalWriteError:
    """Return the error for a failure to write here."""
    if output.no_room:
        return DiskFullError(
            f"the disk is full: {output.summary()}",
            hint="free some space, then sync again: files that have arrived are kept",
        )
    return LocalWriteError(
        f"the staging area cannot be written: {output.summary()}",
        hint="check the file system of DEST and its permissions, then sync again",
    )


def _upstream_error(code: int, output: RsyncOutput, reason: str) -> TransferError:
    """Return the error for a failure at the upstream; `reason` is its message."""
    if output.full:
        return UpstreamFullError(reason)
    if code in _SILENT:
        return (UpstreamSilentError if output.progress else UnansweredError)(
            reason, hint=RETRY_HINT
        )
    if code in _SHELL_COMMAND:
        return UpstreamRefusedError(
            reason, hint="install the remote shell here, and rsync on the upstream's machine"
        )
    if code == _UNSUPPORTED and not output.denied:
        hint = "exclude the file with a filter, or have it renamed upstream"
        return NameRefusedError(reason, hint=hint, reason=output.summary())
    if output.denied or (code not in _BROKEN and code >= 0):
        return _refusal(output, reason)
    return _connection_error(output, reason)


def _connection_error(output: RsyncOutput, reason: str) -> TransferError:
    """Return the error for a connection that failed or broke."""
    if _NOT_CONNECTED.search(reason) and not output.progress:
        hint = "check the content URL, and that its daemon is running"
        return UnreachableError(reason, hint=hint)
    kind = DroppedError if output.dropped and not output.progress else ConnectionBrokenError
    return kind(reason, hint=RETRY_HINT)


def _refusal(output: RsyncOutput, reason: str) -> UpstreamRefusedError:
    """Return the error for a daemon's refusal."""
    if output.refused in OPTIONAL:
        hint = "have it allowed in the upstream's rsyncd.conf (refuse options)"
        return OptionRefusedError(reason, hint=hint, option=output.refused)
    login = output.denied and "auth failed" in reason
    hint = _LOGIN if login else "check the content URL and its access rules"
    return UpstreamRefusedError(reason, hint=hint)
