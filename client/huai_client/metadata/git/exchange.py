"""One request to the upstream for one commit; what comes back goes into a pack.

Rule: nothing that the upstream does or leaves undone makes this last for ever: silence ends
it, and so do a trickle (`ask`), a flood, and talk without a pack.
"""

from collections.abc import Callable

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.git.limits import REPLY_BYTES, TALK_BYTES
from huai_client.metadata.git.reply import pack_of
from huai_client.metadata.http import Answer, MetadataUrl, Question, UpstreamError, ask
from huai_schema.errors import FormatError

_SERVICE = "git-upload-pack"
_REQUEST_TYPE = "application/x-git-upload-pack-request"
_RESULT_TYPE = "application/x-git-upload-pack-result"


def receive_pack(
    metadata: MetadataUrl,
    request: bytes,
    write: Callable[[bytes], object],
    *,
    timeout: float,
    deadline: Deadline = NEVER,
) -> None:
    """Send `request`; `write` gets the pack piece by piece.

    `timeout` (s), `deadline`: see `ask`.
    """
    question = Question(_SERVICE, request, _REQUEST_TYPE)
    with ask(metadata, question, timeout=timeout, deadline=deadline) as answer:
        if answer.content_type != _RESULT_TYPE:
            raise UpstreamError(
                f"{metadata}: the answer is of type {answer.content_type!r}, not of git's",
                hint="look at the URL",
            )
        reply = _Bounded(answer, str(metadata))
        for data in pack_of(reply.read, str(metadata)):
            reply.packed += len(data)
            write(data)


class _Bounded:
    """Reads on only while the upstream does not say too much."""

    def __init__(self, answer: Answer, place: str) -> None:
        self._answer = answer
        self._place = place
        self._received = 0
        self.packed = 0
        """Bytes of the pack so far."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes."""
        data = self._answer.read(size)
        if self._received > 2 * self.packed + TALK_BYTES:
            raise FormatError("a reply that is talk more than pack", self._place)
        self._received += len(data)
        if self._received > REPLY_BYTES:
            raise FormatError(f"a reply of more than {REPLY_BYTES} bytes", self._place)
        return data
