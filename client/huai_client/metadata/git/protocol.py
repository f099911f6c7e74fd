"""One request to the upstream for one commit, and the pack that comes back (gitprotocol-http(5)).

Speaks version 0 of git's protocol (gitprotocol-pack(5)), which every git server understands.  Both
sides' states are known, so the whole conversation is one request: what is wanted, and which commits
are here.  The reply lists shallow commits and acknowledgements, then the pack in side-bands.

Rules: clients in the same state send the same bytes, so that a server can answer the second one
from memory.  Nothing that the upstream does or leaves undone makes this last for ever: silence ends
it, and so do a trickle (`ask`), a flood, and talk without a pack.  What is no packet is a
`FormatError`; a stream that stops inside or before one is an `UpstreamError`.  Text that the
upstream chose reaches the user with nothing but printable characters in it.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from huai_client.metadata.curl.errors import printable
from huai_client.metadata.git.limits import REPLY_BYTES, TALK_BYTES
from huai_client.metadata.http import (
    Answer,
    Asked,
    MetadataUrl,
    Question,
    UpstreamError,
)
from huai_client.run.deadline import NEVER, Deadline
from huai_schema.errors import FormatError
from huai_schema.git.pktline import FLUSH, FLUSH_PACKET, HEADER_BYTES, packet, packet_length

_READ_BYTES = 1 << 18

Read = Callable[[int], bytes]
"""At most so many bytes; none at the end."""
_SERVICE = "git-upload-pack"
_REQUEST_TYPE = "application/x-git-upload-pack-request"
_RESULT_TYPE = "application/x-git-upload-pack-result"
_CAPABILITIES = (
    "side-band-64k",  # errors can be told from data
    "thin-pack",  # deltas against what is here already
    "ofs-delta",  # bases inside of the pack are named by a few bytes
    "no-progress",
    "shallow",
    "agent=huai-client",
)
_BOUNDARY = re.compile(rb"(?:un)?shallow [0-9a-f]{40}\n?")
_ANSWER = re.compile(rb"(?:NAK|ACK [0-9a-f]{40})\n?")
_ERROR = b"ERR "
_DATA, _PROGRESS, _FATAL = 1, 2, 3


class Packets:
    """Takes a stream apart."""

    def __init__(self, read: Read, place: str) -> None:
        """`read` is called until it has given what is needed; `place` is for errors."""
        self._read = read
        self._place = place
        self._buffer = bytearray()

    def section(self) -> Iterator[bytes]:
        """The payloads up to the next flush packet."""
        while (payload := self.next()) is not None:
            yield payload

    def next(self) -> bytes | None:
        """The payload of the next packet; None for a flush packet."""
        header = bytes(self._take(HEADER_BYTES))
        length = packet_length(header, self._place)
        if length == FLUSH:
            return None
        if length < HEADER_BYTES:
            raise FormatError(f"the special packet {header!r} was not expected here", self._place)
        return bytes(self._take(length - HEADER_BYTES))

    def _take(self, count: int) -> bytearray:
        while len(self._buffer) < count:
            chunk = self._read(_READ_BYTES)
            if not chunk:
                raise UpstreamError(f"{self._place}: the reply ended early", hint="run again")
            self._buffer += chunk
        taken = self._buffer[:count]
        del self._buffer[:count]
        return taken


def encode_request(wanted: str, complete: Iterable[str], shallow: Iterable[str]) -> bytes:
    """Ask for the commit `wanted` without its history.

    `complete`: commits of which all objects but those of their history are here; `shallow`:
    those of them whose history is not.  All are hex ids.
    """
    return b"".join(
        (
            packet(f"want {wanted} {' '.join(_CAPABILITIES)}\n".encode()),
            *(packet(f"shallow {commit}".encode()) for commit in sorted(shallow)),
            packet(b"deepen 1"),
            FLUSH_PACKET,
            *(packet(f"have {commit}\n".encode()) for commit in sorted(complete)),
            packet(b"done\n"),
        )
    )


def ask_for_pack(
    metadata: MetadataUrl,
    request: bytes,
    *,
    timeout: float,
    deadline: Deadline = NEVER,
) -> Asked:
    """Send `request`; the others: see `Asked`."""
    question = Question(_SERVICE, request, _REQUEST_TYPE)
    return Asked(metadata, question, timeout=timeout, deadline=deadline)


def receive_pack(asked: Asked, write: Callable[[bytes], object]) -> None:
    """Read the answer to `ask_for_pack`; `write` gets the pack piece by piece."""
    place = str(asked.metadata)
    with asked.answer() as answer:
        if answer.content_type != _RESULT_TYPE:
            raise UpstreamError(
                f"{place}: the answer is of type {answer.content_type!r}, not of git's",
                hint="look at the URL",
            )
        reply = _Bounded(answer, place)
        for data in pack_of(reply.read, place):
            reply.packed += len(data)
            write(data)


def pack_of(read: Read, place: str) -> Iterator[bytes]:
    """The bytes of the pack in a reply to `encode_request`; `place` is for errors."""
    packets = Packets(read, place)
    for payload in packets.section():
        if not _BOUNDARY.fullmatch(payload):
            raise _unexpected(payload, place)
    answer = packets.next()
    while answer is not None and _ANSWER.fullmatch(answer):
        answer = packets.next()
    while answer is not None:
        band = answer[0] if answer else 0
        if band == _DATA:
            yield answer[1:]
        elif band == _FATAL:
            raise _refusal(answer[1:], place)
        elif band != _PROGRESS:
            raise _unexpected(answer, place)
        answer = packets.next()


def _unexpected(payload: bytes, place: str) -> FormatError | UpstreamError:
    if payload.startswith(_ERROR):
        return _refusal(payload.removeprefix(_ERROR), place)
    return FormatError(f"{payload[:40]!r} was not expected here", place)


def _refusal(text: bytes, place: str) -> UpstreamError:
    said = printable(text.decode(errors="replace"))
    return UpstreamError(f"{place}: the upstream says: {said}", hint="run again later")


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
