"""The commit that waits for signatures of who is elsewhere, on the upstream.

Order of writes: each signature with the commit that waits, in one step; with the last one needed
the commit is published as any other.  A run killed anywhere leaves the last commit, and the one
that waits with the signatures that it had; or it has published it.

Rule: who adds a signature holds the module's lock; to hand it out needs none, for packs that are
replaced stay for a while.
"""

import time
from pathlib import Path

from huai_native._native import verify_signature
from huai_program.durable import replacing
from huai_program.packs import TEMPORARY
from huai_schema.codec.keys import read_keys
from huai_schema.codec.pending import PendingCommit, encode_request
from huai_schema.codec.signing import COSIGNED, NAMESPACE, join_commit, signers_of, split_commit
from huai_schema.errors import FormatError
from huai_server.signing.errors import SigningError
from huai_server.signing.keys import ServerKeys
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Head, Repository

_PERMISSIONS = 0o600
"""The module may be a private one."""
_AGAIN = "commit again: huai-server commit"


def hand_out(repository: Repository, name: str, output: Path) -> PendingCommit:
    """Write the commit that waits, with all that it lists, to the file `output`."""
    commit, pending = _pending(repository, name)
    unfinished = output.with_name(TEMPORARY + output.name)
    with (
        storage_errors(output),
        replacing(output, unfinished, permissions=_PERMISSIONS) as file,
    ):
        file.write(encode_request(commit))
        repository.packs.send(pending.data, pending.tree, file.write)
    return pending


def add_signature(
    repository: Repository, name: str, keys: ServerKeys, signature: bytes
) -> tuple[PendingCommit, Head | None]:
    """Add a signature to the commit that waits; the commit, once there are enough of them.

    `SigningError` if it is of anything else, or by a key that does not count.
    """
    pending = _pending(repository, name)[1]
    _check_current(repository, name, keys, pending)
    signers = {verify_signature(COSIGNED, pending.payload, each) for each in pending.signatures}
    try:
        public = verify_signature(COSIGNED, pending.payload, signature)
    except FormatError as error:
        raise SigningError(
            f"{name}: this is not a signature of the commit with serial {pending.info.serial}: "
            f"{error.message}",
            hint=f"sign what this hands out: huai-server key pending {name} --output FILE",
        ) from None
    if public == keys.signer.public or public not in keys.chain.newest.keys:
        raise SigningError(
            f"{name}: signed by {public}, which is not one of the cosigners",
            hint="huai-server key show lists the keys that count",
        )
    if public not in signers:
        pending = pending._replace(signatures=(*pending.signatures, signature))
    if len(pending.signatures) < keys.needed:
        repository.hold(pending)
        return pending, None
    data = join_commit(pending.data, keys.signer.sign(NAMESPACE, pending.data))
    _prove(data, keys)
    return pending, repository.publish(data, repository.head())


def _pending(repository: Repository, name: str) -> tuple[str, PendingCommit]:
    found = repository.pending()
    if found is None:
        raise SigningError(
            f"{name}: no commit waits for signatures",
            hint="one does if `pending` of [signing] is true, and a cosigner did not answer",
        )
    return found


def _check_current(
    repository: Repository, name: str, keys: ServerKeys, pending: PendingCommit
) -> None:
    """Refuse what no downstream would take any more."""
    chain = read_keys(pending.tree, repository)
    if chain is None or chain.newest != keys.chain.newest:
        raise SigningError(f"{name}: the keys changed since it waits", hint=f"{_AGAIN} {name}")
    if pending.promise.valid_until <= time.time():
        raise SigningError(f"{name}: it waited for too long", hint=f"{_AGAIN} {name}")


def _prove(data: bytes, keys: ServerKeys) -> None:
    """The commit is one that downstreams take."""
    signed = split_commit(data)
    assert signed is not None  # noqa: S101 - it was just joined
    if not keys.chain.newest.agrees(signers_of(signed)):
        raise SigningError(
            f"signed by fewer than {keys.chain.newest.threshold} of the keys that count",
            hint="huai-server key show lists them",
        )
