"""Signed commits: the signatures apart from what they sign, and what is promised in there.

FORMAT.md, "Signatures".  Pure; says nothing of whether a key is to be trusted.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from huai_native._native import verify_signature
from huai_schema.codec.commits import COMMIT_BYTES, COMMIT_TIME_MAX
from huai_schema.codec.keys import KEYS_MAX
from huai_schema.errors import FormatError

NAMESPACE = "git"
"""What git signs commits as (ssh-keygen(1), -n)."""
COSIGNED = "huai-cosigned"
"""What others sign a commit as: no co-signature is a signature of git."""
SIGNATURE_FILE_BYTES = 4096
"""An armored signature."""
COSIGNATURES_MAX = KEYS_MAX - 1
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
_COSIGNATURE = b"Huai-Cosignature:"
_COSIGNATURES = re.compile(rb"(?:Huai-Cosignature: [A-Za-z0-9+/]+={0,2}\n)+\Z")
_ARMOR = b"-----BEGIN SSH SIGNATURE-----\n%s\n-----END SSH SIGNATURE-----\n"
_COLUMNS = 70
"""Of base64 in a line, as ssh-keygen writes it."""
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


def cosign(payload: bytes, signatures: Sequence[bytes]) -> bytes:
    """What is signed of a commit that others have signed as well; `signatures` are armored."""
    for signature in signatures:
        payload += b"%s %s\n" % (_COSIGNATURE, b"".join(signature.splitlines()[1:-1]))
    return payload


def split_cosigned(payload: bytes) -> tuple[bytes, list[bytes]]:
    """What was signed by others, and their signatures, armored; the opposite of `cosign`."""
    found = _COSIGNATURES.search(payload)
    own = payload[: found.start()] if found else payload
    if b"\n" + _COSIGNATURE in own:
        raise FormatError("a co-signature that is not behind everything else", "commit")
    lines = found[0].splitlines() if found else []
    if len(lines) > COSIGNATURES_MAX:
        raise FormatError(f"more than {COSIGNATURES_MAX} co-signatures", "commit")
    return own, [_armored(line.rpartition(b" ")[2]) for line in lines]


def signers_of(signed: SignedCommit) -> tuple[str, ...]:
    """The keys by which a commit is signed, git's first; `FormatError` if a signature is wrong."""
    key = verify_signature(NAMESPACE, *signed)
    own, signatures = split_cosigned(signed.payload)
    return (key, *(verify_signature(COSIGNED, own, each) for each in signatures))


def _armored(text: bytes) -> bytes:
    lines = (text[begin : begin + _COLUMNS] for begin in range(0, len(text), _COLUMNS))
    return _ARMOR % b"\n".join(lines)


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
