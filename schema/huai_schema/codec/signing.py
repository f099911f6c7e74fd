"""Signed commits: the signature apart from what it signs, and what is promised in there.

FORMAT.md, "Signatures".  Pure; says nothing of whether a key is to be trusted.
"""

import re
from typing import NamedTuple

from huai_schema.codec.commits import COMMIT_BYTES, COMMIT_TIME_MAX
from huai_schema.errors import FormatError

NAMESPACE = "git"
"""What git signs commits as (ssh-keygen(1), -n)."""
_SIGNED = re.compile(
    rb"(tree [0-9a-f]{40}\n(?:parent [0-9a-f]{40}\n)*author [^\n]*\ncommitter [^\n]*\n)"
    rb"gpgsig ([^\n]+\n(?: [^\n]+\n)*)(?=\n)"
)
"""The lines above the message: a signature, and beside it what git always writes."""
_PROMISE = re.compile(
    r"^Huai-Identity: ([0-9a-f]{32})\n"
    r"Huai-Valid-Until: ([1-9][0-9]{0,11})\n"
    r"Huai-Listing-Hash: blake3:([0-9a-f]{64})$",
    re.MULTILINE,
)
_KEYS = re.compile("^Huai-(?:Identity|Valid-Until|Listing-Hash):", re.MULTILINE)


class SignedCommit(NamedTuple):
    """A commit object, taken apart."""

    payload: bytes
    """What is signed: all but the signature."""
    signature: bytes


def split_commit(data: bytes) -> SignedCommit | None:
    """A signed commit; None: it is not signed; `FormatError`: it is, unlike git does it."""
    if len(data) > COMMIT_BYTES:
        raise FormatError(f"a commit of more than {COMMIT_BYTES} bytes", "commit")
    found = _SIGNED.match(data)
    if found is not None:
        signature = found[2].replace(b"\n ", b"\n")
        return SignedCommit(found[1] + data[found.end() :], signature)
    if b"\ngpgsig" in data.partition(b"\n\n")[0]:
        raise FormatError("a signature that is repeated, or not alone in its place", "commit")
    return None


def join_commit(payload: bytes, signature: bytes) -> bytes:
    """The signed commit; the opposite of `split_commit`."""
    head, _, message = payload.partition(b"\n\n")
    lines = signature.rstrip(b"\n").replace(b"\n", b"\n ")
    return b"%s\ngpgsig %s\n\n%s" % (head, lines, message)


class Promise(NamedTuple):
    """What a signed commit says beside the rest: trailers that older readers ignore."""

    identity: str
    """Of the module; the descriptor says the same."""
    valid_until: int
    """Seconds since the epoch."""
    listing: bytes
    """The listing hash of the commit's tree."""

    def encode(self) -> str:
        """The lines to add to a message."""
        return (
            f"Huai-Identity: {self.identity}\n"
            f"Huai-Valid-Until: {self.valid_until}\n"
            f"Huai-Listing-Hash: blake3:{self.listing.hex()}\n"
        )

    @classmethod
    def decode(cls, message: str) -> "Promise":
        """What a message promises; `FormatError` if that is not said once, in order."""
        found = _PROMISE.search(message)
        if found is None or len(_KEYS.findall(message)) != len(found.groups()):
            raise FormatError("a signed message without what a signature is for", "commit")
        valid_until = int(found[2])
        if valid_until > COMMIT_TIME_MAX:
            raise FormatError(f"valid until a time out of range: {valid_until} s", "commit")
        return cls(found[1], valid_until, bytes.fromhex(found[3]))
