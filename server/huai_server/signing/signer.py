"""The signers: a key file, the SSH agent, or a command of the administrator.

A command, or ssh-keygen for the agent, reads the bytes to sign on its standard input and writes the
signature; no shell.  Rule: a signature leaves this module only after verification with the key that
`[signing]` names.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_native._native import PrivateKey, parse_public_key, verify_signature
from huai_program.configuration import reject_foreign
from huai_program.durations import seconds
from huai_program.key_files import KeyFile
from huai_program.programs import run_captured
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_server.config.tables import Signing

_PUBLIC = b"ssh-"
_AGENT = ("ssh-keygen", "-Y", "sign", "-n", "{namespace}", "-f", "{key}")
"""For a public key ssh-keygen lets the agent at SSH_AUTH_SOCK sign."""
_SHOWN = 300
_HINT = "check [signing] in server.toml; the last commit is intact"


class SigningError(HuaiError):
    """A signature cannot be made or is not valid, so the commit is not made."""

    exit_code = ExitCode.UNSIGNED


class Signer(NamedTuple):
    """A signer with one key."""

    public: str
    make: Callable[[str, bytes], bytes]
    """Signs bytes in a namespace; the caller must verify the signature."""

    def sign(self, namespace: str, message: bytes) -> bytes:
        """Return the armored signature of `message` in `namespace`, after its verification.

        Raises `SigningError` if it cannot be made, is not valid, or is of another key.
        """
        signature = self.make(namespace, message)
        try:
            key = verify_signature(namespace, message, signature)
        except FormatError as error:
            raise SigningError(
                f"not a valid signature: {error.message}",
                hint="check key and command of [signing] in server.toml",
            ) from None
        if key != self.public:
            raise SigningError(
                f"signed by {key}, not by {self.public}",
                hint="key and command of [signing] in server.toml must belong together",
            )
        return signature


def open_signer(signing: Signing) -> Signer:
    """Return the signer that `[signing]` names; signs nothing.

    Raises `SigningError` if the key file cannot be used.
    """
    path = Path(signing.key)
    data = read_key_file(path)
    if not is_public(data):
        if signing.command:
            raise SigningError(
                f"{path}: with a command, the key must be a public one",
                hint="name the file with the public key, KEY.pub",
            )
        return from_private(parse_private(data, path))
    values = {"{key}": str(path)}
    run = partial(_run, signing.command or _AGENT, values, seconds(signing.timeout))
    return Signer(public_key(data, path), run)


def is_public(data: bytes) -> bool:
    """Return True if a key file holds a public key, so that an agent or a command signs."""
    return data.startswith(_PUBLIC)


def public_key(data: bytes, path: Path) -> str:
    """Parse the content of a key file to the public key, also if it holds the private key.

    Raises `SigningError`, which names `path`, if it is malformed.
    """
    if not is_public(data):
        return parse_private(data, path).public
    try:
        return parse_public_key(data.decode("ascii", "replace"))
    except FormatError as error:
        raise _unusable_key(path, error) from None


def read_key_file(path: Path) -> bytes:
    """Read a key file, at most 16 KiB.

    Raises `SigningError` if it cannot be read, or is a private key that other users may read, and
    `ConfigError` if this user is root and another one may change it.
    """
    try:
        file = KeyFile.read(path)
    except OSError as error:
        raise SigningError(
            f"{path}: {error.strerror}",
            hint="huai-server key new makes a key; it must belong to the user who commits",
        ) from error
    if file.is_open_to_others and not is_public(file.data):
        raise SigningError(
            f"{path}: other users may read this private key",
            hint=f"chmod 600 {path}; replace the key if one of them may have read it",
        )
    reject_foreign(path)
    return file.data


def parse_private(data: bytes, path: Path) -> PrivateKey:
    """Parse a private key; raises `SigningError`, which names `path`, if it is malformed."""
    try:
        return PrivateKey(data)
    except FormatError as error:
        raise _unusable_key(path, error) from None


def from_private(key: PrivateKey) -> Signer:
    """Return the signer with a private key in memory."""
    return Signer(key.public, lambda namespace, message: key.sign(namespace, message).encode())


def _run(
    command: tuple[str, ...], values: dict[str, str], seconds: int, namespace: str, message: bytes
) -> bytes:
    """Return the signature that `command` prints for `message`, which it reads as standard input.

    Its words `{namespace}` and those in `values` are replaced.  Raises `SigningError` if it fails,
    or takes longer than `seconds`.
    """
    values = {"{namespace}": namespace, **values}
    words = [values.get(word, word) for word in command]
    # A passphrase cannot be entered.
    environment = {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}
    try:
        done = run_captured(words, message, seconds=seconds, env=environment)
    except TimeoutError as error:
        raise SigningError(
            f"{words[0]}: no signature within {seconds} s; the agent or its device hangs",
            hint=_HINT,
        ) from error
    except OSError as error:
        raise SigningError(f"{words[0]}: {error.strerror}", hint=_HINT) from error
    if done.code:
        errors = done.errors.decode("utf-8", "replace").strip()[:_SHOWN]
        raise SigningError(f"{words[0]}: exit code {done.code}: {errors!r}", hint=_HINT)
    return done.output


def _unusable_key(path: Path, error: FormatError) -> SigningError:
    return SigningError(
        f"{path}: {error.message}",
        hint="a key must be Ed25519 without a passphrase: huai-server key new makes one; load a "
        "key with a passphrase into an agent, and set key = KEY.pub",
    )
