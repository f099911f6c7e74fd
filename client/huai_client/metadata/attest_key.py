"""The private key with which a downstream attests what it holds."""

import os
import stat
from pathlib import Path
from typing import ClassVar

from huai_native._native import PrivateKey
from huai_schema.errors import ExitCode, FormatError, HuaiError

_KEY_BYTES = 16_384
_OTHERS = 0o077


class AttestError(HuaiError):
    """Nothing can be attested here."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO


def read_key(path: Path) -> PrivateKey:
    """The private key in a file; one that others may read is refused."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_KEY_BYTES) if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise AttestError(
            f"{path}: {error.strerror}", hint="ssh-keygen -t ed25519 -N '' -f FILE makes a key"
        ) from error
    if stat.S_IMODE(mode) & _OTHERS:
        raise AttestError(f"{path}: others may read this private key", hint=f"chmod 600 {path}")
    try:
        return PrivateKey(data)
    except FormatError as error:
        raise AttestError(
            f"{path}: {error.message}", hint="a key has to be Ed25519, without a passphrase"
        ) from None
