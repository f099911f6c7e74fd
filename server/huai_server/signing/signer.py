"""What makes signatures: a key file, the SSH agent, or a command.

Rule: a signature leaves this module only after it was proved by the key that `[signing]` names.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from huai_native._native import PrivateKey, parse_public_key, verify_signature
from huai_program.configuration import reject_foreign
from huai_program.key_files import KeyFile
from huai_schema.errors import FormatError
from huai_server.config.tables import Signing
from huai_server.signing.command import run_signer
from huai_server.signing.errors import SigningError

_PUBLIC = b"ssh-"
_AGENT = ("ssh-keygen", "-Y", "sign", "-n", "{namespace}", "-f", "{key}")
"""Of a public key, ssh-keygen asks the agent at SSH_AUTH_SOCK to sign."""


class Signer(NamedTuple):
    """Signs as one key."""

    public: str
    make: Callable[[str, bytes], bytes]

    def sign(self, namespace: str, message: bytes) -> bytes:
        """The signature of `message`; `SigningError` unless it is one of this key."""
        signature = self.make(namespace, message)
        try:
            key = verify_signature(namespace, message, signature)
        except FormatError as error:
            raise SigningError(
                f"this is not a signature: {error.message}",
                hint="[signing] in server.toml says what makes it",
            ) from None
        if key != self.public:
            raise SigningError(
                f"signed by {key}, not by {self.public}",
                hint="key and command of [signing] in server.toml have to belong together",
            )
        return signature


def open_signer(signing: Signing) -> Signer:
    """The signer that server.toml names; nothing is signed yet."""
    path = Path(signing.key)
    data = read_key_file(path)
    if not is_public(data):
        if signing.command:
            raise SigningError(
                f"{path}: with a command, the public key is enough",
                hint="name the file with the public key, KEY.pub",
            )
        return from_private(parse_private(path, data))
    values = {"key": str(path)}
    ask = partial(_ask, signing.command or _AGENT, values, signing.timeout)
    return Signer(public_of(path, data), ask)


def is_public(data: bytes) -> bool:
    """Whether a key file holds a public key: an agent or a command signs."""
    return data.startswith(_PUBLIC)


def public_of(path: Path, data: bytes) -> str:
    """The public key in a key file, or that of the private key in it."""
    if not is_public(data):
        return parse_private(path, data).public
    try:
        return parse_public_key(data.decode("ascii", "replace"))
    except FormatError as error:
        raise _unusable(path, error) from None


def read_key_file(path: Path) -> bytes:
    """A key file; a private key that others may read is refused."""
    try:
        found = KeyFile.read(path)
    except OSError as error:
        raise SigningError(
            f"{path}: {error.strerror}",
            hint="huai-server key new makes a key; it has to belong to the user who commits",
        ) from error
    if found.is_open_to_others and not is_public(found.data):
        raise SigningError(
            f"{path}: others may read this private key", hint=f"chmod 600 {path}, if none did"
        )
    reject_foreign(path)
    return found.data


def parse_private(path: Path, data: bytes) -> PrivateKey:
    """The private key in a file."""
    try:
        return PrivateKey(data)
    except FormatError as error:
        raise _unusable(path, error) from None


def from_private(key: PrivateKey) -> Signer:
    """The signer with a key that is in memory."""
    return Signer(key.public, lambda namespace, message: key.sign(namespace, message).encode())


def _ask(
    command: tuple[str, ...],
    values: dict[str, str],
    seconds: float,
    namespace: str,
    message: bytes,
) -> bytes:
    words = {"{namespace}": namespace, **{f"{{{key}}}": value for key, value in values.items()}}
    return run_signer([words.get(word, word) for word in command], message, seconds=seconds)


def _unusable(path: Path, error: FormatError) -> SigningError:
    return SigningError(
        f"{path}: {error.message}",
        hint="a key has to be Ed25519, without a passphrase: huai-server key new makes one; "
        "one with a passphrase belongs into an agent, and key = KEY.pub",
    )
