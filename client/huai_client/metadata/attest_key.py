"""The private key with which a downstream attests what it holds."""

from pathlib import Path
from typing import ClassVar

from huai_native._native import PrivateKey
from huai_program.configuration import reject_foreign
from huai_program.key_files import KeyFile
from huai_schema.errors import ExitCode, FormatError, HuaiError


class AttestError(HuaiError):
    """Nothing can be attested here."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO


def read_key(path: Path) -> PrivateKey:
    """The private key in a file; one that others may read is refused."""
    try:
        found = KeyFile.read(path)
    except OSError as error:
        raise AttestError(
            f"{path}: {error.strerror}", hint="ssh-keygen -t ed25519 -N '' -f FILE makes a key"
        ) from error
    if found.is_open_to_others:
        raise AttestError(f"{path}: others may read this private key", hint=f"chmod 600 {path}")
    reject_foreign(path)
    try:
        return PrivateKey(found.data)
    except FormatError as error:
        raise AttestError(
            f"{path}: {error.message}", hint="a key has to be Ed25519, without a passphrase"
        ) from None
