"""Opens connections for a content URL, by the administrator's options."""

import os
import resource

from huai_client.config.tls import check_key
from huai_client.transfer.http.connections import Connections, Limits
from huai_client.transfer.http.login import headers_for
from huai_client.transfer.http.requests import Circumstances
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl

_SHARE = 4
"""A request may hold a file open: all streams together use a quarter of the free handles."""


def connections_to(url: ContentUrl, options: TransferOptions, grant: Grant) -> Connections:
    """Return connections within `grant`; none is opened before the first request.

    Raises what `headers_for` raises, and `TlsError`.
    """
    check_key(options.tls.files)
    return Connections(
        url,
        Circumstances(options.tls, options.contimeout, grant.bwlimit, options.reach),
        Limits(grant.connections, min(options.hosts.requests(url.service), _files_open(options))),
        headers_for(url, options.http_headers),
    )


def _files_open(options: TransferOptions) -> int:
    """Return the number of files that a stream may have open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = most - len(os.listdir("/proc/self/fd"))
    return max(1, free // _SHARE // options.streams)
