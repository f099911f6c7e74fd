"""The private key with which a downstream signs attestations."""

from pathlib import Path
from typing import ClassVar

from huai_native._native import PrivateKey
from huai_program.configuration import reject_foreign
from huai_program.key_files import KeyFile
from huai_schema.errors import ExitCode, FormatError, HuaiError


class AttestError(HuaiError):
    """An attestation cannot be made."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO


def read_key(path: Path) -> PrivateKey:
    """Read the private key in a file; `AttestError` if other users may read it."""
    try:
        key_file = KeyFile.read(path)
    except OSError as error:
        raise AttestError(
            f"{path}: {error.strerror}", hint="ssh-keygen -t ed25519 -N '' -f FILE makes a key"
        ) from error
    if key_file.is_open_to_others:
        raise AttestError(f"{path}: others may read this private key", hint=f"chmod 600 {path}")
    reject_foreign(path)
    try:
        return PrivateKey(key_file.data)
    except FormatError as error:
        raise AttestError(
            f"{path}: {error.message}", hint="the key must be Ed25519, without a passphrase"
        ) from None
