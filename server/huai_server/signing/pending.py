"""The pending commit of an upstream, which waits for co-signatures from other machines.

Order of writes: each signature is stored with the pending commit in one step, and with the last
one needed the commit is published like any other.  A run that is killed leaves the last commit and
the pending one with its earlier signatures, or it has published the commit.

Rule: adding a signature requires the module's lock.  Writing a request needs none, because
replaced packs remain for a while.
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
from huai_server.signing.keys import ServerKeys
from huai_server.signing.signer import SigningError
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Head, Repository

_PERMISSIONS = 0o600
"""The mode of a request, since the module may be private."""
_AGAIN = "commit again: huai-server commit"


def write_request(repository: Repository, name: str, output: Path) -> PendingCommit:
    """Write the pending commit, with all objects that it needs, to the file `output`.

    The file is replaced, and readable by its owner only.  Raises `SigningError` if no commit is
    pending.
    """
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
    """Add a signature to the pending commit; with the last one needed, publish the commit.

    Returns the commit, and the published head or None.  A second signature by one key is ignored.
    Raises `SigningError` if the signature is not a cosigner's, or the commit is outdated.
    """
    pending = _pending(repository, name)[1]
    _check_current(repository, name, keys, pending)
    signers = {verify_signature(COSIGNED, pending.payload, each) for each in pending.signatures}
    try:
        public = verify_signature(COSIGNED, pending.payload, signature)
    except FormatError as error:
        raise SigningError(
            f"{name}: not a signature of the commit with serial {pending.info.serial}: "
            f"{error.message}",
            hint=f"sign the FILE of: huai-server key pending {name} FILE",
        ) from None
    if public == keys.signer.public or public not in keys.chain.newest.keys:
        raise SigningError(
            f"{name}: signed by {public}, which is not one of the cosigners",
            hint="huai-server key show lists the trusted keys",
        )
    if public not in signers:
        pending = pending._replace(signatures=(*pending.signatures, signature))
    if len(pending.signatures) < keys.needed:
        repository.set_pending(pending)
        return pending, None
    data = join_commit(pending.data, keys.signer.sign(NAMESPACE, pending.data))
    _prove(data, keys)
    return pending, repository.publish(data, repository.head())


def _pending(repository: Repository, name: str) -> tuple[str, PendingCommit]:
    """Return hex id and content of the pending commit; raises `SigningError` without one."""
    pending = repository.pending()
    if pending is None:
        raise SigningError(
            f"{name}: no commit waits for signatures",
            hint="a commit waits if `pending` in [signing] is true and a cosigner has not signed",
        )
    return pending


def _check_current(
    repository: Repository, name: str, keys: ServerKeys, pending: PendingCommit
) -> None:
    """Raise `SigningError` if the keys changed since the pending commit, or it has expired."""
    chain = read_keys(pending.tree, repository)
    if chain is None or chain.newest != keys.chain.newest:
        raise SigningError(
            f"{name}: the keys changed after the pending commit", hint=f"{_AGAIN} {name}"
        )
    if pending.promise.valid_until <= time.time():
        raise SigningError(f"{name}: the pending commit has expired", hint=f"{_AGAIN} {name}")


def _prove(data: bytes, keys: ServerKeys) -> None:
    """Raise `SigningError` unless downstreams would accept the signatures of the commit."""
    signed = split_commit(data)
    assert signed is not None  # noqa: S101 - it was just joined
    if not keys.chain.newest.agrees(signers_of(signed)):
        raise SigningError(
            f"signed by fewer than {keys.chain.newest.threshold} of the trusted keys",
            hint="huai-server key show lists them",
        )
