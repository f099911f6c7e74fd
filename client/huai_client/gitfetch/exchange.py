"""One request to the upstream for one commit; what comes back goes into a pack.

Rule: nothing that the upstream does or leaves undone makes this last for ever: silence ends
it, and so do a trickle (`ask`) and a flood.
"""

from collections.abc import Callable

from huai_client.gitfetch.bounds import REPLY_BYTES
from huai_client.gitfetch.packets import Read
from huai_client.gitfetch.reply import pack_of
from huai_client.lines.upstream import Answer, MetadataUrl, UpstreamError, ask
from huai_schema.errors import FormatError

_SERVICE = "git-upload-pack"
_REQUEST_TYPE = "application/x-git-upload-pack-request"
_RESULT_TYPE = "application/x-git-upload-pack-result"


def receive_pack(
    metadata: MetadataUrl, request: bytes, write: Callable[[bytes], None], *, timeout: float
) -> None:
    """Send `request`; `write` gets the pack piece by piece.

    `timeout` (s): see `ask`.
    """
    with ask(metadata, _SERVICE, request, content_type=_REQUEST_TYPE, timeout=timeout) as answer:
        if answer.content_type != _RESULT_TYPE:
            raise UpstreamError(
                f"{metadata}: the answer is of type {answer.content_type!r}, not of git's",
                hint="look at the URL",
            )
        for data in pack_of(_bounded(answer, metadata), str(metadata)):
            write(data)


def _bounded(answer: Answer, metadata: MetadataUrl) -> Read:
    """Reads on only while the upstream does not say too much."""
    received = 0

    def read(size: int) -> bytes:
        nonlocal received
        data = answer.read(size)
        received += len(data)
        if received > REPLY_BYTES:
            raise FormatError(f"a reply of more than {REPLY_BYTES} bytes", str(metadata))
        return data

    return read
