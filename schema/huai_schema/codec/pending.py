"""A commit that waits for signatures, and the request that carries it to a signer.

FORMAT.md, "Pending commits".  Pure; does not decide whether to trust a key.
"""

import re
from typing import NamedTuple

from huai_schema.codec.commits import CommitInfo, decode_commit
from huai_schema.codec.signing import Promise, cosign, split_commit, split_cosigned
from huai_schema.errors import FormatError

REQUEST_BYTES = 63
_REQUEST = re.compile(rb"huai-pending 1\ncommit ([0-9a-f]{40})\n")


class PendingCommit(NamedTuple):
    """A commit to be signed, with the signatures that it has."""

    payload: bytes
    """The bytes that co-signers sign."""
    signatures: tuple[bytes, ...]
    """The present signatures, armored."""
    tree: bytes
    """The id of the commit's tree."""
    parents: tuple[str, ...]
    """Hex ids."""
    time: int
    """The time of the commit, seconds since the epoch."""
    info: CommitInfo
    promise: Promise

    @property
    def data(self) -> bytes:
        """The commit object, with the signatures that it has."""
        return cosign(self.payload, self.signatures)

    @classmethod
    def decode(cls, data: bytes) -> "PendingCommit":
        """Parse the bytes of a commit; `FormatError` if it is signed, or cannot be signed."""
        if split_commit(data) is not None:
            raise FormatError("is already signed", "commit")
        parsed = decode_commit(data)
        payload, signatures = split_cosigned(data)
        info = parsed.info()
        promise = Promise.decode(parsed.message.decode())
        return cls(
            payload, tuple(signatures), parsed.tree, parsed.parents, parsed.time, info, promise
        )

    def replaces(self, former: "PendingCommit") -> bool:
        """True if this commit must replace `former`: the tree differs, or it is valid much longer.

        Much longer is by more than half of the validity of a signature.
        """
        later = self.promise.valid_until - former.promise.valid_until
        return self.tree != former.tree or 2 * later > self.promise.valid_until - self.time


def encode_request(commit: str) -> bytes:
    """Return the first lines of a request for a signature; the commit's pack follows them."""
    return b"huai-pending 1\ncommit %s\n" % commit.encode()


def decode_request_id(data: bytes) -> str:
    """Parse the first `REQUEST_BYTES` bytes of a request to the commit's hex id.

    Raises `FormatError` if they are malformed.
    """
    match = _REQUEST.fullmatch(data)
    if match is None:
        raise FormatError("does not begin with the lines of a pending commit", "request")
    return match[1].decode()
