"""Co-signing on another machine: examine the upstream's pending commit, sign it and keep it.

The commit is read whole, as `check` does, and compared with the one that was signed before, which
is kept in `ROOT/cosigned/IDENTITY/SERIAL.git`, a repository for each module.
Order of writes: the commit is unpacked in `ROOT/cosigned/examined.git`; the signature is made; the
repository gets its name, and the former one is deleted; the signature is returned.  A run that is
killed has released no signature of a commit that is not kept, and the next one begins again.

Rule: never sign two different commits with one serial.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from huai_native._native import ListingHashes
from huai_program.durable import sync_folder
from huai_program.locking import locked
from huai_schema.codec.commits import SERIAL_STEP, Counts
from huai_schema.codec.keys import KeyChain, read_keys
from huai_schema.codec.pending import REQUEST_BYTES, PendingCommit, decode_request_id
from huai_schema.codec.signing import COSIGNED
from huai_schema.diff.diff import count
from huai_schema.errors import FormatError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.limits import CLOCK_SKEW
from huai_server.signing.signer import Signer, SigningError
from huai_server.state.errors import storage_errors
from huai_server.store.check import check_repository
from huai_server.store.git_program import GitFailedError, run_git
from huai_server.store.repository import Repository, StoreError

_WAIT_SECONDS = 30.0


class Examined(NamedTuple):
    """A commit that passed all checks and may be signed."""

    pending: PendingCommit
    chain: KeyChain
    counts: Counts
    """The differences from the commit that was signed before."""
    former: PendingCommit | None
    """The commit that was signed before; None if this is the first one."""


class _Read(NamedTuple):
    repository: Repository
    pending: PendingCommit
    chain: KeyChain
    snapshot: Snapshot


def examine(root: Path, request: Path, signer: Signer) -> Examined:
    """Check the commit in the file `request`; raises `SigningError` if a client would refuse it.

    Also if the signer's key is not among its keys, and for a serial that was signed before.  Keeps
    nothing, and signs nothing.  `root` is the state root of this machine, which has the commits
    that were signed before.  Raises `LockedError` after 30 s.
    """
    with _unpack_request(root, request) as (_, new):
        return _judge(root, new, signer)


def sign(root: Path, request: Path, signer: Signer) -> tuple[Examined, bytes]:
    """Check the commit in the file `request`, and return its signature by `signer`.

    Keeps the commit on disk, and deletes the one that was signed before.  Raises as `examine` does.
    """
    with _unpack_request(root, request) as (place, new):
        examined = _judge(root, new, signer)
        signature = signer.sign(COSIGNED, examined.pending.payload)
        _keep(root, place, examined.pending)
        return examined, signature


@contextmanager
def _unpack_request(root: Path, request: Path) -> Iterator[tuple[Path, _Read]]:
    """Unpack a request into a repository, which is deleted after the block unless renamed.

    Holds a lock of the state root, for which it waits 30 s.  Raises `SigningError` if the request,
    or a commit that the block reads, is malformed.
    """
    folder = root / "cosigned"
    place = folder / "examined.git"
    with storage_errors(root):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(root / "cosigned.lock", wait=_WAIT_SECONDS):
            shutil.rmtree(place, ignore_errors=True)
            try:
                yield place, _unpack(request, place)
            except (FormatError, StoreError, GitFailedError) as error:
                raise _refusal(error.message) from error
            finally:
                shutil.rmtree(place, ignore_errors=True)


def _unpack(request: Path, place: Path) -> _Read:
    """Unpack a request into a new repository at `place`, and read its commit.

    Raises `FormatError`, `StoreError` or `GitFailedError` if it is malformed.
    """
    repository = Repository.create(place)
    with storage_errors(request), request.open("rb", buffering=0) as file:
        commit = decode_request_id(file.read(REQUEST_BYTES) or b"")
        run_git(place, ["index-pack", "--stdin"], stdin=file, put=lambda _: None)
    repository = Repository(place)
    repository.move_branch(repository.head_of(commit), None)
    return _read_pending(repository)


def _read_pending(repository: Repository) -> _Read:
    """Read the pending commit of a repository; `FormatError` if it is missing or malformed."""
    head = repository.head()
    if head is None:
        raise FormatError("the commit is missing", str(repository.path))
    pending = PendingCommit.decode(repository.read(bytes.fromhex(head.commit), "commit"))
    chain = read_keys(pending.tree, repository)
    if chain is None:
        raise FormatError("it lists no keys", "commit")
    descriptor, snapshot = repository.snapshot(head)
    if descriptor.identity != pending.promise.identity:
        raise FormatError("the signed text names another module", "commit")
    return _Read(repository, pending, chain, snapshot)


def _judge(root: Path, new: _Read, signer: Signer) -> Examined:
    """Return the commit if a client and `check` would accept it; else raise `SigningError`."""
    pending, now = new.pending, time.time()
    if signer.public not in new.chain.newest.keys:
        raise _refusal(f"{signer.public} is not one of the trusted keys")
    if pending.time > now + CLOCK_SKEW:
        raise _refusal("its date is more than an hour ahead")
    if pending.promise.valid_until <= now:
        raise _refusal("it is no longer valid")
    former = _read_former(root, pending.promise.identity)
    if former is None:
        counts = Counts(added=pending.info.totals.entries)
    else:
        _check_continues(former, new)
        counts = count(former.snapshot, new.snapshot)
    if ListingHashes(b"").of_tree(pending.tree, new.repository) != pending.promise.listing:
        raise _refusal("the signed text has the hash of another listing")
    faults = check_repository(pending.info.module, new.repository).faults
    if faults:
        raise _refusal(faults[0])
    return Examined(pending, new.chain, counts, former and former.pending)


def _check_continues(former: _Read, new: _Read) -> None:
    """Raise `SigningError` unless name, serial and keys continue the former commit.

    The same commit again is allowed.
    """
    old, serial = former.pending, new.pending.info.serial
    if new.pending.info.module != old.info.module:
        raise _refusal(f"the module was called {old.info.module} before")
    if serial <= old.info.serial and new.pending.payload != old.payload:
        raise _refusal(f"its serial is {serial}, but serial {old.info.serial} was signed before")
    if serial > old.info.serial + SERIAL_STEP:
        raise _refusal(f"its serial is {serial}, far above {old.info.serial}")
    if not new.chain.follows(former.chain.newest):
        version = former.chain.newest.version
        raise _refusal(f"its keys do not follow from version {version}, which was signed before")


def _read_former(root: Path, identity: str) -> _Read | None:
    """Read the last commit that was signed for the module with this identity; None if none was.

    Raises `FormatError` or `StoreError` if it is damaged.
    """
    folder = root / "cosigned" / identity
    repositories = sorted(folder.glob("*.git"), key=lambda path: int(path.stem))
    return _read_pending(Repository(repositories[-1])) if repositories else None


def _keep(root: Path, place: Path, pending: PendingCommit) -> None:
    """Rename the repository at `place` by its commit, durably; delete that of the former commit."""
    folder = root / "cosigned" / pending.promise.identity
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
    target = folder / f"{pending.info.serial}.git"
    if target.exists():  # the very same
        return
    os.rename(place, target)
    sync_folder(folder)
    for path in folder.iterdir():
        if path != target:
            shutil.rmtree(path, ignore_errors=True)


def _refusal(reason: str) -> SigningError:
    return SigningError(f"refused to sign: {reason}", hint="ask the administrator of the upstream")
