"""A commit that waits for signatures, and how who is to sign gets it.

FORMAT.md, "Pending commits".  Pure; says nothing of whether a key is to be trusted.
"""

import re
from typing import NamedTuple

from huai_schema.codec.commits import CommitInfo, decode_commit
from huai_schema.codec.signing import Promise, cosign, split_commit, split_cosigned
from huai_schema.errors import FormatError

REQUEST_BYTES = 63
_REQUEST = re.compile(rb"huai-pending 1\ncommit ([0-9a-f]{40})\n")


class PendingCommit(NamedTuple):
    """What is to be signed, and what of that is there."""

    payload: bytes
    """What co-signers sign."""
    signatures: tuple[bytes, ...]
    """Those that are there, armored."""
    tree: bytes
    """The id of its tree."""
    parents: tuple[str, ...]
    """Hex ids."""
    time: int
    """When it was made, seconds since the epoch."""
    info: CommitInfo
    promise: Promise

    @property
    def data(self) -> bytes:
        """The commit object."""
        return cosign(self.payload, self.signatures)

    @classmethod
    def decode(cls, data: bytes) -> "PendingCommit":
        """Take the bytes of a commit apart; `FormatError` if it is signed, or could not be."""
        if split_commit(data) is not None:
            raise FormatError("it is signed already", "commit")
        made = decode_commit(data)
        payload, signatures = split_cosigned(data)
        info = made.info()
        promise = Promise.decode(made.message.decode())
        return cls(payload, tuple(signatures), made.tree, made.parents, made.time, info, promise)

    def replaces(self, former: "PendingCommit") -> bool:
        """Whether it takes the place of a former one: for another tree, or when that expires soon.

        Soon is when half of the time is over for which a signature holds.
        """
        later = self.promise.valid_until - former.promise.valid_until
        return self.tree != former.tree or 2 * later > self.promise.valid_until - self.time


def encode_request(commit: str) -> bytes:
    """What stands before the pack of a commit (hex id) that is handed out."""
    return b"huai-pending 1\ncommit %s\n" % commit.encode()


def decode_request(data: bytes) -> str:
    """The commit's id, in hex; `data` are the first `REQUEST_BYTES` of a request."""
    found = _REQUEST.fullmatch(data)
    if found is None:
        raise FormatError("no pending commit: the first lines are others", "request")
    return found[1].decode()
