"""Signed commits: separates signatures from the signed bytes, and parses the signed trailers.

FORMAT.md, "Signatures".  Pure; does not decide whether to trust a key.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from huai_native._native import verify_signature
from huai_schema.codec.commits import COMMIT_BYTES, COMMIT_TIME_MAX
from huai_schema.codec.keys import KEYS_MAX
from huai_schema.errors import FormatError

NAMESPACE = "git"
"""The namespace in which git signs commits (ssh-keygen(1), -n)."""
COSIGNED = "huai-cosigned"
"""The namespace of co-signatures, so that none counts as a signature by git."""
SIGNATURE_FILE_BYTES = 4096
"""The maximal size of an armored signature."""
COSIGNATURES_MAX = KEYS_MAX - 1
_SIGNED = re.compile(
    rb"(tree [0-9a-f]{40}\n(?:parent [0-9a-f]{40}\n)*author [^\n]*\ncommitter [^\n]*\n)"
    rb"gpgsig ([^\n]+\n(?: [^\n]+\n)*)(?=\n)"
)
"""The lines above the message: those that git always writes, and a signature."""
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
"""Columns of base64 in a line, as ssh-keygen writes it."""
_KEYS = re.compile("^Huai-(?:Identity|Valid-Until|Listing-Hash):", re.MULTILINE)


class SignedCommit(NamedTuple):
    """A signed commit object, split."""

    payload: bytes
    """The signed bytes: all but the signature."""
    signature: bytes
    """Armored, as ssh-keygen writes it."""


def split_commit(data: bytes) -> SignedCommit | None:
    """Split a signed commit; None if it is unsigned, `FormatError` if too large or malformed."""
    if len(data) > COMMIT_BYTES:
        raise FormatError(f"a commit of more than {COMMIT_BYTES} bytes", "commit")
    match = _SIGNED.match(data)
    if match is not None:
        signature = match[2].replace(b"\n ", b"\n")
        return SignedCommit(match[1] + data[match.end() :], signature)
    if b"\ngpgsig" in data.partition(b"\n\n")[0]:
        raise FormatError("the signature is repeated, or not alone in its place", "commit")
    return None


def cosign(payload: bytes, signatures: Sequence[bytes]) -> bytes:
    """Return `payload` followed by a line for each of `signatures`, which are armored."""
    for signature in signatures:
        payload += b"%s %s\n" % (_COSIGNATURE, b"".join(signature.splitlines()[1:-1]))
    return payload


def split_cosigned(payload: bytes) -> tuple[bytes, list[bytes]]:
    """Undo `cosign`: return what co-signers signed, and their armored signatures.

    Raises `FormatError` if co-signatures are too many, or not the last lines.
    """
    match = _COSIGNATURES.search(payload)
    own = payload[: match.start()] if match else payload
    if b"\n" + _COSIGNATURE in own:
        raise FormatError("co-signatures must be the last lines", "commit")
    lines = match[0].splitlines() if match else []
    if len(lines) > COSIGNATURES_MAX:
        raise FormatError(f"more than {COSIGNATURES_MAX} co-signatures", "commit")
    return own, [_armor(line.rpartition(b" ")[2]) for line in lines]


def signers_of(signed: SignedCommit) -> tuple[str, ...]:
    """Verify all signatures of a commit; return the keys that signed it, first that of git's.

    Raises `FormatError` if a signature is wrong; does not require enough of them.
    """
    key = verify_signature(NAMESPACE, *signed)
    own, signatures = split_cosigned(signed.payload)
    return (key, *(verify_signature(COSIGNED, own, each) for each in signatures))


def _armor(text: bytes) -> bytes:
    """Return the armored signature for one line of base64."""
    lines = (text[begin : begin + _COLUMNS] for begin in range(0, len(text), _COLUMNS))
    return _ARMOR % b"\n".join(lines)


def join_commit(payload: bytes, signature: bytes) -> bytes:
    """Return the signed commit; undoes `split_commit`.  `signature` is armored."""
    head, _, message = payload.partition(b"\n\n")
    lines = signature.rstrip(b"\n").replace(b"\n", b"\n ")
    return b"%s\ngpgsig %s\n\n%s" % (head, lines, message)


class Promise(NamedTuple):
    """The trailers of a signed commit, which older readers ignore."""

    identity: str
    valid_until: int
    """Seconds since the epoch."""
    listing: bytes
    """The listing hash of the commit's tree, 32 bytes."""

    def encode(self) -> str:
        """Return the lines to append to a message."""
        return (
            f"Huai-Identity: {self.identity}\n"
            f"Huai-Valid-Until: {self.valid_until}\n"
            f"Huai-Listing-Hash: blake3:{self.listing.hex()}\n"
        )

    @classmethod
    def decode(cls, message: str) -> "Promise":
        """Parse the trailers of a message; `FormatError` unless each is there once, in order."""
        match = _PROMISE.search(message)
        if match is None or len(_KEYS.findall(message)) != len(match.groups()):
            raise FormatError("trailers for a signature are missing or out of order", "commit")
        valid_until = int(match[2])
        if valid_until > COMMIT_TIME_MAX:
            raise FormatError(f"valid-until is out of range: {valid_until} s", "commit")
        return cls(match[1], valid_until, bytes.fromhex(match[3]))
