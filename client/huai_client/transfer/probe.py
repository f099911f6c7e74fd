"""Tests a content URL by one run of rsync, which lists the folder and none of its content.

A URL of HTTP is tested by `http.probe`.

Costs the upstream one connection and the reading of one directory.
"""

import os

from huai_client.config.proxies import rsync_proxy
from huai_client.transfer.attempt import refusal_of
from huai_client.transfer.errors import UpstreamRefusedError
from huai_client.transfer.limits import StallDetector
from huai_client.transfer.options import TransferOptions, without_secrets
from huai_client.transfer.rsync.arguments import has_shell
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.run import Bounds, RsyncProcess
from huai_client.transfer.urls import ContentUrl, Transport
from huai_schema.errors import HuaiError

_LIST_OPTIONS = ("--list-only", "--dirs", "--exclude=*", "--no-motd")


def probe(url: ContentUrl, options: TransferOptions) -> HuaiError | None:
    """Return the error of `url`, or None if it responds.  Takes two timeouts at most."""
    if url.transport is Transport.HTTP:
        from huai_client.transfer.http.probe import probe_http  # loads libcurl

        return probe_http(url, options)
    if refusal := refusal_of(url, options):
        return refusal
    extra = options.extra if url.own else without_secrets(options.extra)
    command = [options.program, *extra, *_LIST_OPTIONS, f"--timeout={options.timeout}"]
    if url.transport is Transport.DAEMON and not has_shell(extra):
        command.append(f"--contimeout={options.contimeout}")
    arguments = [os.fsencode(argument) for argument in (*command, "--", url.source)]
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        stall, bounds = StallDetector(options.timeout), Bounds(own=url.own)
        run = RsyncProcess(
            arguments, names=b"", folder=folder, locks=(), stall=stall, bounds=bounds
        )
        code = run.wait(lambda _: None)
    finally:
        os.close(folder)
    proxy = rsync_proxy() if url.transport is Transport.DAEMON else None
    failure = classify_exit(code, run.output, url, proxy)
    if failure is None and code:
        reason = f"{url}: {run.output.summary()} (rsync exit {code})"
        return UpstreamRefusedError(
            reason,
            hint="check that the folder exists there, and that its daemon lets this client read it",
        )
    return failure
