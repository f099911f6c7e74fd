"""The keys of a server, from version to version: what stands in each commit as `keys`.

`ROOT/keys` is that blob.  Changes are made under `ROOT/keys.lock`.  Order of writes of a rotation:
the new key beside the old one; the new version of the keys; the new key in the place of the old
one.  A rotation cut before the second step never was; one cut behind it is
finished by whoever opens the keys next.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from huai_native._native import PrivateKey
from huai_program.durable import replace_file, sync_folder
from huai_program.locking import locked
from huai_schema.codec.keys import NAMESPACE, KeyChain, Keys, begin_chain
from huai_schema.codec.signing import COSIGNED
from huai_schema.errors import FormatError
from huai_server.config.tables import Signing
from huai_server.signing.errors import SigningError
from huai_server.signing.signer import (
    Signer,
    from_private,
    is_public,
    open_signer,
    public_of,
    read_key_file,
)
from huai_server.state.errors import storage_errors

_FILE, _LOCK = "keys", "keys.lock"
_SECONDS = 30.0
_SEED_BYTES = 32
_PRIVATE, _PUBLIC = 0o600, 0o644


class ServerKeys(NamedTuple):
    """Who signs, and what downstreams learn of it."""

    signer: Signer
    chain: KeyChain
    validity: int
    """Seconds for which a signature holds."""
    cosigners: tuple[Signer, ...] = ()
    pending: bool = False
    """Whether a commit waits for signatures that are missing."""

    @property
    def needed(self) -> int:
        """How many signatures a commit needs beside the signer's own."""
        return self.chain.newest.threshold - 1

    def cosign(self, payload: bytes) -> list[bytes]:
        """As many signatures beside the signer's own as the threshold asks for, in their order.

        Who does not answer is passed over; `SigningError` if too few are left, unless a commit may
        wait for them.
        """
        made: list[bytes] = []
        missing = self.needed
        failure: SigningError | None = None
        for each in self.cosigners:
            if len(made) == missing:
                break
            try:
                made.append(each.sign(COSIGNED, payload))
            except SigningError as error:
                failure = error
        if len(made) < missing and not self.pending:
            why = failure.message if failure else "server.toml names no more cosigners"
            raise SigningError(
                f"{len(made) + 1} of {missing + 1} signatures: {why}",
                hint="look at [signing] in server.toml; the last commit is intact",
            )
        return made


def open_keys(root: Path, signing: Signing) -> ServerKeys:
    """The keys of the server; the first version of them is made if there is none."""
    with _changing(root):
        keys = _open(root, signing)
        _check_configured(keys, signing)
        return keys


def configure(root: Path, signing: Signing) -> ServerKeys:
    """Make the keys those that server.toml names, and its threshold theirs; all of them sign."""
    with _changing(root):
        keys = _open(root, signing)
        chain = _extend(keys.chain, _configured(keys), _everybody(keys), signing.threshold)
        _write(root, chain)
    return keys._replace(chain=chain)


def make_key(path: Path, comment: str) -> str:
    """Write a new private key to `path`, which must not exist; the public key."""
    key = PrivateKey.generate(os.urandom(_SEED_BYTES), comment)
    with storage_errors(path):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
        except FileExistsError:
            raise SigningError(
                f"{path}: exists already", hint="huai-server key rotate replaces a key"
            ) from None
        with open(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, _PRIVATE)
            file.write(key.encode())
            file.flush()
            os.fsync(handle)
        sync_folder(path.parent)
    return key.public


def rotate(
    root: Path, signing: Signing, comment: str, *, to: Path | None = None, keep: bool = False
) -> ServerKeys:
    """Replace the key in the file of `[signing]`; with `keep` the old one counts as well.

    A private key by a new one; a public key by the one in the file `to`, as which the agent or the
    command has to be able to sign, too.
    """
    path = Path(signing.key)
    with _changing(root):
        old = _open(root, signing)
        text, signer = _new_key(signing, comment, to)
        if signer.public == old.signer.public:
            raise SigningError(f"{to}: this is the key that signs", hint="name a new one")
        others = [key for key in old.chain.newest.keys if keep or key != old.signer.public]
        listed = tuple(dict.fromkeys((signer.public, *others)))
        # It is signed before anything is written: an agent may not have the new key.
        chain = _extend(old.chain, listed, (*_everybody(old), signer))
        permissions = _PRIVATE if to is None else _PUBLIC
        replace_file(_next(path), text, _next(path, ".tmp"), permissions=permissions)
        _write(root, chain)
        _finish_rotation(path, chain)
    return old._replace(signer=open_signer(signing), chain=chain)


def _new_key(signing: Signing, comment: str, to: Path | None) -> tuple[bytes, Signer]:
    """What is to be in the key file next, and who signs then."""
    path = Path(signing.key)
    is_elsewhere = is_public(read_key_file(path))
    if to is None:
        if is_elsewhere:
            raise SigningError(
                f"{path}: the private key is elsewhere, and the new one has to be there, too",
                hint="huai-server key rotate --to NEW.pub",
            )
        new = PrivateKey.generate(os.urandom(_SEED_BYTES), comment)
        return new.encode().encode(), from_private(new)
    if not is_elsewhere:
        raise SigningError(
            f"{path}: a private key is replaced by one that is made for it",
            hint="huai-server key rotate, without --to",
        )
    data = read_key_file(to)
    if not is_public(data):
        raise SigningError(f"{to}: this is not a public key", hint="name the file NEW.pub")
    return data, open_signer(structs.replace(signing, key=str(to)))


def revoke(root: Path, signing: Signing, key: str) -> ServerKeys:
    """Let the signatures of one key count no more; it is not the one that signs."""
    with _changing(root):
        keys = _open(root, signing)
        if key == keys.signer.public:
            hint = "huai-server key rotate replaces it"
            raise SigningError("this is the key that signs", hint=hint)
        if key in _configured(keys):
            hint = "take it out of server.toml, then: huai-server key configure"
            raise SigningError("this is the key of a cosigner", hint=hint)
        if key not in keys.chain.newest.keys:
            raise SigningError(f"{key}: no such key", hint="huai-server key show lists them")
        left = tuple(each for each in keys.chain.newest.keys if each != key)
        chain = _extend(keys.chain, left, _everybody(keys))
        _write(root, chain)
    return keys._replace(chain=chain)


def _open(root: Path, signing: Signing) -> ServerKeys:
    chain = _read(root)
    if chain is not None:
        _finish_rotation(Path(signing.key), chain)
    signer = open_signer(signing)
    others = [
        structs.replace(signing, key=each.key, command=each.command) for each in signing.cosigners
    ]
    cosigners = tuple(open_signer(each) for each in others)
    if chain is None:
        listed = tuple(dict.fromkeys(each.public for each in (signer, *cosigners)))
        first = Keys(1, listed, signing.threshold)
        signers = (signer, *cosigners)
        try:
            chain = begin_chain(first, *(each.sign(NAMESPACE, first.encode()) for each in signers))
        except FormatError as error:
            raise SigningError(error.message, hint="see [signing] in server.toml") from None
        _write(root, chain)
    if signer.public not in chain.newest.keys:
        raise SigningError(
            f"{signing.key}: this key is not one of those that count since version "
            f"{chain.newest.version}",
            hint="huai-server key show lists these; a new key comes by huai-server key rotate",
        )
    return ServerKeys(signer, chain, signing.seconds, cosigners, signing.pending)


def _everybody(keys: ServerKeys) -> tuple[Signer, ...]:
    return (keys.signer, *keys.cosigners)


def _configured(keys: ServerKeys) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.public for each in _everybody(keys)))


def _check_configured(keys: ServerKeys, signing: Signing) -> None:
    """`SigningError` if downstreams were told of other cosigners, or another threshold."""
    newest = keys.chain.newest
    if signing.threshold != newest.threshold or not set(_configured(keys)) <= set(newest.keys):
        raise SigningError(
            f"server.toml names other cosigners, or another threshold, than version "
            f"{newest.version} of the keys",
            hint="huai-server key configure tells downstreams of them",
        )


def _extend(
    chain: KeyChain, keys: tuple[str, ...], signers: tuple[Signer, ...], threshold: int = 0
) -> KeyChain:
    """One more version, which all of `signers` sign; `threshold`: 0: as before."""
    version = Keys(chain.newest.version + 1, keys, threshold or chain.newest.threshold)
    text = version.encode()
    try:
        return chain.extend(version, [signer.sign(NAMESPACE, text) for signer in signers])
    except FormatError as error:
        raise SigningError(
            error.message,
            hint="look at [signing] in server.toml, and at huai-server key show",
        ) from None


def _finish_rotation(path: Path, chain: KeyChain) -> None:
    """Put the next key in place if it counts; else it is of a rotation that never was."""
    new = _next(path)
    try:
        data = new.read_bytes()
    except OSError:  # none is there; whatever else keeps it from being read is told of by the key
        return
    if public_of(new, data) in chain.newest.keys:
        new.replace(path)
        sync_folder(path.parent)


def _next(path: Path, suffix: str = "") -> Path:
    return path.with_name(f"{path.name}.next{suffix}")


def _read(root: Path) -> KeyChain | None:
    path = root / _FILE
    with storage_errors(path):
        if not path.exists():
            return None
        try:
            return KeyChain.decode(path.read_bytes())
        except FormatError as error:
            raise SigningError(
                f"{path}: {error.message}",
                hint="restore it from a backup: any commit has it, git cat-file blob main:keys",
            ) from None


def _write(root: Path, chain: KeyChain) -> None:
    path = root / _FILE
    with storage_errors(path):
        replace_file(path, chain.encode(), path.with_name(f"{_FILE}.new"), permissions=0o644)


@contextmanager
def _changing(root: Path) -> Iterator[None]:
    with storage_errors(root), locked(root / _LOCK, wait=_SECONDS):
        yield
