"""The keys of a server, from version to version: what stands in each commit as `keys`.

`ROOT/keys` is that blob.  Changes are made under `ROOT/keys.lock`.  Order of writes of a rotation:
the new private key beside the old one; the new version of the keys; the new private key in the
place of the old one.  A rotation cut before the second step never was; one cut behind it is
finished by whoever opens the keys next.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from huai_native._native import PrivateKey
from huai_schema.codec.keys import NAMESPACE, KeyChain, Keys, begin_chain
from huai_schema.errors import FormatError
from huai_schema.program.durable import replace_file, sync_folder
from huai_schema.program.locking import locked
from huai_server.config import Signing
from huai_server.errors import storage_errors
from huai_server.signing.errors import SigningError
from huai_server.signing.signer import (
    Signer,
    from_private,
    open_signer,
    parse_private,
    read_key_file,
)

_FILE, _LOCK = "keys", "keys.lock"
_SECONDS = 30.0
_SEED_BYTES = 32
_PRIVATE = 0o600


class ServerKeys(NamedTuple):
    """Who signs, and what downstreams learn of it."""

    signer: Signer
    chain: KeyChain
    validity: int
    """Seconds for which a signature holds."""


def open_keys(root: Path, signing: Signing) -> ServerKeys:
    """The keys of the server; the first version of them is made if there is none."""
    with _changing(root):
        return _open(root, signing)


def make_key(path: Path, comment: str) -> str:
    """Write a new private key to `path`, which must not exist; the public key."""
    key = PrivateKey.generate(secrets.token_bytes(_SEED_BYTES), comment)
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


def rotate(root: Path, signing: Signing, comment: str, *, keep: bool = False) -> ServerKeys:
    """Replace the private key by a new one; with `keep` the old one counts as well for a while."""
    path = Path(signing.key)
    with _changing(root):
        old = _open(root, signing)
        parse_private(path, read_key_file(path))  # an agent's key is not ours to replace
        new = PrivateKey.generate(secrets.token_bytes(_SEED_BYTES), comment)
        signer = from_private(new)
        others = [key for key in old.chain.newest.keys if keep or key != old.signer.public]
        replace_file(_next(path), new.encode().encode(), _next(path, ".tmp"), permissions=_PRIVATE)
        chain = _extend(old.chain, (signer.public, *others), (old.signer, signer))
        _write(root, chain)
        _finish_rotation(path, chain)
    return ServerKeys(signer, chain, old.validity)


def revoke(root: Path, signing: Signing, key: str) -> ServerKeys:
    """Let the signatures of one key count no more; it is not the one that signs."""
    with _changing(root):
        keys = _open(root, signing)
        if key == keys.signer.public:
            hint = "huai-server key rotate replaces it"
            raise SigningError("this is the key that signs", hint=hint)
        if key not in keys.chain.newest.keys:
            raise SigningError(f"{key}: no such key", hint="huai-server key show lists them")
        left = tuple(each for each in keys.chain.newest.keys if each != key)
        chain = _extend(keys.chain, left, (keys.signer,))
        _write(root, chain)
    return keys._replace(chain=chain)


def _open(root: Path, signing: Signing) -> ServerKeys:
    chain = _read(root)
    if chain is not None:
        _finish_rotation(Path(signing.key), chain)
    signer = open_signer(signing)
    if chain is None:
        first = Keys(1, (signer.public,))
        chain = begin_chain(first, signer.sign(NAMESPACE, first.encode()))
        _write(root, chain)
    if signer.public not in chain.newest.keys:
        raise SigningError(
            f"{signing.key}: this key is none of those that count since version "
            f"{chain.newest.version}",
            hint="huai-server key show lists these; a new key comes by huai-server key rotate",
        )
    return ServerKeys(signer, chain, signing.seconds)


def _extend(chain: KeyChain, keys: tuple[str, ...], signers: tuple[Signer, ...]) -> KeyChain:
    version = Keys(chain.newest.version + 1, keys)
    text = version.encode()
    try:
        return chain.extend(version, [signer.sign(NAMESPACE, text) for signer in signers])
    except FormatError as error:
        raise SigningError(error.message, hint="revoke keys that are not in use") from None


def _finish_rotation(path: Path, chain: KeyChain) -> None:
    """Put the next private key in place if it counts; else it is of a rotation that never was."""
    new = _next(path)
    try:
        data = new.read_bytes()
    except OSError:  # none is there; whatever else keeps it from being read is told of by the key
        return
    if parse_private(new, data).public in chain.newest.keys:
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
