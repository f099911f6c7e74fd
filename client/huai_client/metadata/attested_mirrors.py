"""The mirrors that attested a serial of a module, as a huai server lists them (docs/MIRRORS.md).

The list only adds places to fetch from: without one there are none, and no failure.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated

import msgspec

from huai_client.metadata.http import (
    MetadataUrl,
    Request,
    UpstreamError,
    is_http,
    send,
    server_and_module,
)
from huai_client.run.options import Deadline

_BYTES_MAX = 4 << 20
_TIMEOUT = 5.0
"""Seconds without a response."""


class _Mirror(msgspec.Struct):
    serial: int
    offered: bool
    urls: Annotated[list[str], msgspec.Meta(max_length=64)]


class _Mirrors(msgspec.Struct):
    mirrors: list[_Mirror]


def attested_urls(
    urls: Iterable[MetadataUrl], name: str, serial: int, deadline: Deadline
) -> list[str]:
    """Return the URLs of whole mirrors that have `serial` or a later one, by the first good list.

    `urls` are those of the metadata, `name` that of the module there.  Empty if no server has a
    list; raises `TimeUpError` at the deadline.
    """
    for url in urls:
        server, module = server_and_module(url.url, name)
        if not is_http(server):
            continue
        request = Request(f"api/v1/modules/{module}/mirrors")
        with (
            suppress(UpstreamError, msgspec.DecodeError),
            send(
                msgspec.structs.replace(url, url=server),
                request,
                timeout=_TIMEOUT,
                deadline=deadline,
            ) as answer,
        ):
            listed = msgspec.json.decode(answer.read_all(_BYTES_MAX), type=_Mirrors).mirrors
            near = [each for each in listed if each.offered and each.serial >= serial]
            return [text for each in near for text in each.urls]
    return []
