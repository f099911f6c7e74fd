"""The keys of a server, version by version, as the blob `keys` in each commit has them.

`ROOT/keys` is that blob, and is changed under `ROOT/keys.lock`.  Order of writes of a rotation: the
new key next to the old one; the new version of the keys; the new key in the place of the old one.
A rotation that is cut before the second step has no effect; after it, the next call that opens the
keys finishes the rotation.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from huai_native._native import PrivateKey
from huai_program.durable import replace_file, sync_folder
from huai_program.durations import seconds
from huai_program.locking import locked
from huai_schema.codec.keys import NAMESPACE, KeyChain, Keys, begin_chain
from huai_schema.codec.signing import COSIGNED
from huai_schema.errors import FormatError
from huai_server.config.tables import Signing
from huai_server.signing.signer import (
    Signer,
    SigningError,
    from_private,
    is_public,
    open_signer,
    public_key,
    read_key_file,
)
from huai_server.state.errors import storage_errors

_FILE, _LOCK = "keys", "keys.lock"
_SECONDS = 30.0
_SEED_BYTES = 32
_PRIVATE, _PUBLIC = 0o600, 0o644


class ServerKeys(NamedTuple):
    """The signers of a server, and the keys that downstreams trust."""

    signer: Signer
    chain: KeyChain
    validity: int
    """Seconds for which a signature is valid."""
    cosigners: tuple[Signer, ...] = ()
    pending: bool = False
    """True if a commit may wait for co-signatures."""

    @property
    def needed(self) -> int:
        """The number of co-signatures that a commit needs."""
        return self.chain.newest.threshold - 1

    def cosign(self, payload: bytes) -> list[bytes]:
        """Return as many co-signatures of `payload` as are needed, in the order of the cosigners.

        Skips cosigners that fail.  Raises `SigningError` if too few are left, unless `pending` is
        true.
        """
        signatures: list[bytes] = []
        failure: SigningError | None = None
        for cosigner in self.cosigners:
            if len(signatures) == self.needed:
                break
            try:
                signatures.append(cosigner.sign(COSIGNED, payload))
            except SigningError as error:
                failure = error
        if len(signatures) < self.needed and not self.pending:
            why = failure.message if failure else "server.toml names no more cosigners"
            raise SigningError(
                f"{len(signatures) + 1} of {self.needed + 1} signatures: {why}",
                hint="check [signing] in server.toml; the last commit is intact",
            )
        return signatures


def open_keys(root: Path, signing: Signing) -> ServerKeys:
    """Return the keys of the server; writes `ROOT/keys` if missing, finishes a cut rotation.

    Raises `SigningError` if server.toml names other cosigners or another threshold, or a key that
    is not trusted or cannot be used; `LockedError` after 30 s.
    """
    with _lock_keys(root):
        keys = _open(root, signing)
        _check_configured(keys, signing)
        return keys


def configure(root: Path, signing: Signing) -> ServerKeys:
    """Write a version with the keys and threshold of server.toml, signed by all these keys.

    Raises `SigningError` if one of them cannot sign, or the present version does not allow it, and
    `LockedError` after 30 s.
    """
    with _lock_keys(root):
        keys = _open(root, signing)
        chain = _extend(keys.chain, _configured_keys(keys), _all_signers(keys), signing.threshold)
        _write_chain(root, chain)
    return keys._replace(chain=chain)


def make_key(path: Path, comment: str) -> str:
    """Write a new private key with `comment` to `path`, durably, and return its public key.

    Raises `SigningError` if the file exists.
    """
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
    """Replace the key in the file of `[signing]`; with `keep` the old one remains trusted.

    Replaces a private key by a new one, and a public key by that in the file `to`, with which the
    agent or the command must be able to sign.  `comment` is for a new private key.  Raises
    `SigningError` before anything is written.
    """
    path = Path(signing.key)
    with _lock_keys(root):
        old = _open(root, signing)
        text, signer = _new_key(signing, comment, to)
        if signer.public == old.signer.public:
            raise SigningError(f"{to}: this key signs already", hint="name a new one")
        remaining = [key for key in old.chain.newest.keys if keep or key != old.signer.public]
        listed = tuple(dict.fromkeys((signer.public, *remaining)))
        # Sign before writing anything: an agent may not have the new key.
        chain = _extend(old.chain, listed, (*_all_signers(old), signer))
        permissions = _PRIVATE if to is None else _PUBLIC
        replace_file(_next_path(path), text, _next_path(path, ".tmp"), permissions=permissions)
        _write_chain(root, chain)
        _finish_rotation(path, chain)
    return old._replace(signer=open_signer(signing), chain=chain)


def _new_key(signing: Signing, comment: str, to: Path | None) -> tuple[bytes, Signer]:
    """Return the new content of the key file, and the signer with it.

    Raises `SigningError` if `to` is missing for a public key, given for a private one, or not a
    public key.
    """
    path = Path(signing.key)
    is_elsewhere = is_public(read_key_file(path))
    if to is None:
        if is_elsewhere:
            raise SigningError(
                f"{path}: this is a public key; its private key must be replaced where it is kept",
                hint="then run: huai-server key rotate --to NEW.pub",
            )
        new = PrivateKey.generate(os.urandom(_SEED_BYTES), comment)
        return new.encode().encode(), from_private(new)
    if not is_elsewhere:
        raise SigningError(
            f"{path}: --to does not apply to a private key, for which a new one is made",
            hint="run huai-server key rotate without --to",
        )
    data = read_key_file(to)
    if not is_public(data):
        raise SigningError(f"{to}: not a public key", hint="name the file NEW.pub")
    return data, open_signer(structs.replace(signing, key=str(to)))


def revoke(root: Path, signing: Signing, key: str) -> ServerKeys:
    """Write a version of the trusted keys without `key`.

    `key` is a public key, as `ServerKeys` has it.  Raises `SigningError` if server.toml configures
    the key, it is not trusted, or too few keys would be left for the threshold; `LockedError` after
    30 s.
    """
    with _lock_keys(root):
        keys = _open(root, signing)
        if key == keys.signer.public:
            hint = "huai-server key rotate replaces it"
            raise SigningError("this key signs the commits", hint=hint)
        if key in _configured_keys(keys):
            hint = "remove it from server.toml, then run: huai-server key configure"
            raise SigningError("this is the key of a cosigner", hint=hint)
        if key not in keys.chain.newest.keys:
            raise SigningError(f"{key}: not a trusted key", hint="huai-server key show lists them")
        remaining = tuple(each for each in keys.chain.newest.keys if each != key)
        chain = _extend(keys.chain, remaining, _all_signers(keys))
        _write_chain(root, chain)
    return keys._replace(chain=chain)


def _open(root: Path, signing: Signing) -> ServerKeys:
    """Return the keys as `open_keys` does, whatever cosigners and threshold server.toml has.

    Raises `SigningError` if a key cannot be used, or the first one is not trusted.
    """
    chain = _read_chain(root)
    if chain is not None:
        _finish_rotation(Path(signing.key), chain)
    signer = open_signer(signing)
    cosigners = tuple(
        open_signer(structs.replace(signing, key=each.key, command=each.command))
        for each in signing.cosigners
    )
    if chain is None:
        listed = tuple(dict.fromkeys(each.public for each in (signer, *cosigners)))
        first = Keys(1, listed, signing.threshold)
        signers = (signer, *cosigners)
        try:
            chain = begin_chain(first, *(each.sign(NAMESPACE, first.encode()) for each in signers))
        except FormatError as error:
            raise SigningError(error.message, hint="see [signing] in server.toml") from None
        _write_chain(root, chain)
    if signer.public not in chain.newest.keys:
        raise SigningError(
            f"{signing.key}: this key is not one of the trusted keys of version "
            f"{chain.newest.version}",
            hint="huai-server key show lists these; huai-server key rotate adds a new key",
        )
    return ServerKeys(signer, chain, seconds(signing.validity), cosigners, signing.pending)


def _all_signers(keys: ServerKeys) -> tuple[Signer, ...]:
    return (keys.signer, *keys.cosigners)


def _configured_keys(keys: ServerKeys) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.public for each in _all_signers(keys)))


def _check_configured(keys: ServerKeys, signing: Signing) -> None:
    """Raise `SigningError` if the newest keys lack a configured key, or have another threshold."""
    newest = keys.chain.newest
    if signing.threshold != newest.threshold or not set(_configured_keys(keys)) <= set(newest.keys):
        raise SigningError(
            f"server.toml names other cosigners, or another threshold, than version "
            f"{newest.version} of the keys",
            hint="huai-server key configure makes a version with them",
        )


def _extend(
    chain: KeyChain, keys: tuple[str, ...], signers: tuple[Signer, ...], threshold: int = 0
) -> KeyChain:
    """Return the chain with a new version of `keys`, which all of `signers` sign.

    A `threshold` of 0 keeps the present one.  Raises `SigningError` if the chain is not valid then.
    """
    version = Keys(chain.newest.version + 1, keys, threshold or chain.newest.threshold)
    text = version.encode()
    try:
        return chain.extend(version, [signer.sign(NAMESPACE, text) for signer in signers])
    except FormatError as error:
        raise SigningError(
            error.message,
            hint="check [signing] in server.toml, and huai-server key show",
        ) from None


def _finish_rotation(path: Path, chain: KeyChain) -> None:
    """Rename the next key over the key file, durably, if the newest version has that key."""
    new = _next_path(path)
    try:
        data = new.read_bytes()
    except OSError:  # missing; reading the key itself reports any other error
        return
    if public_key(data, new) in chain.newest.keys:
        new.replace(path)
        sync_folder(path.parent)


def _next_path(path: Path, suffix: str = "") -> Path:
    """Return the path of the key that is to replace the one at `path`."""
    return path.with_name(f"{path.name}.next{suffix}")


def _read_chain(root: Path) -> KeyChain | None:
    """Read the chain of keys, None without a file; raises `SigningError` if it is damaged."""
    path = root / _FILE
    with storage_errors(path):
        if not path.exists():
            return None
        try:
            return KeyChain.decode(path.read_bytes())
        except FormatError as error:
            raise SigningError(
                f"{path}: {error.message}",
                hint="restore it from a backup or a commit: git cat-file blob main:keys",
            ) from None


def _write_chain(root: Path, chain: KeyChain) -> None:
    """Replace the file of the chain, durably."""
    path = root / _FILE
    with storage_errors(path):
        replace_file(path, chain.encode(), path.with_name(f"{_FILE}.new"), permissions=0o644)


@contextmanager
def _lock_keys(root: Path) -> Iterator[None]:
    """Hold the lock of the keys; `LockedError` after 30 s.  An `OSError` is converted."""
    with storage_errors(root), locked(root / _LOCK, wait=_SECONDS):
        yield
