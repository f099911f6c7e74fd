"""The keys that client.toml names: a list, or a file of allowed signers (ssh-keygen(1))."""

import re
from pathlib import Path

from huai_client.config.load import Module
from huai_native._native import PrivateKey, parse_public_key
from huai_program.configuration import ConfigError, reject_foreign
from huai_program.key_files import KeyFile
from huai_schema.errors import FormatError, HuaiError

_FILE_BYTES = 1 << 20
_KEY = re.compile(r"(?:^|[ \t])(ssh-ed25519[ \t]+[^ \t]+)")
_NAMESPACES = re.compile(r'namespaces="([^"]*)"', re.IGNORECASE)
_UNKNOWN = re.compile(r"cert-authority|valid-(?:after|before)", re.IGNORECASE)


def configured_keys(module: Module) -> tuple[str, ...]:
    """Return the keys of `keys` and of the file `signers`, each once, in canonical spelling.

    Raises `ConfigError` for a malformed key, and for a file that is unusable or has none.
    """
    lines = [(f"keys: {line!r}", line) for line in module.keys]
    if module.signers:
        lines += _read(Path(module.signers))
    return tuple(dict.fromkeys(_parsed(place, line) for place, line in lines))


def _parsed(place: str, line: str) -> str:
    """Parse a line with a public key; raises `ConfigError` if it is malformed."""
    try:
        return parse_public_key(line)
    except FormatError as error:
        raise ConfigError(
            f"{place}: {error.reason}", hint="the upstream's huai-server key show prints the line"
        ) from None


def _read(path: Path) -> list[tuple[str, str]]:
    """Return place and text of each Ed25519 key for git in a file.

    Raises `ConfigError` if the file cannot be read, has no such key, or an unknown option.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            f"signers: {path}: {error.strerror}", hint="the user who syncs must be able to read it"
        ) from error
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        place = f"signers: {path}: line {number}"
        key = _KEY.search(line)
        if line.lstrip().startswith("#") or key is None:
            continue
        options = line[: key.start()]
        if _UNKNOWN.search(options):
            raise ConfigError(
                f"{place}: an unknown option", hint='only namespaces="git" is allowed before a key'
            )
        namespaces = _NAMESPACES.search(options)
        if namespaces is None or "git" in namespaces[1].split(","):
            keys.append((place, key[1]))
    if not keys:
        raise ConfigError(
            f"signers: {path}: no key for signing commits",
            hint="the upstream's huai-server key show prints the line",
        )
    return keys


class AttestError(HuaiError):
    """An attestation cannot be made."""


def read_key(path: Path) -> PrivateKey:
    """Read the private key in a file.

    Raises `AttestError` if it is missing or malformed, or other users may read it, `ConfigError`
    for root if another user may change it.
    """
    try:
        key_file = KeyFile.read(path)
    except OSError as error:
        raise AttestError(
            f"{path}: {error.strerror}", hint="ssh-keygen -t ed25519 -N '' -f FILE makes a key"
        ) from error
    if key_file.is_open_to_others:
        raise AttestError(
            f"{path}: others may read this private key",
            hint=f"chmod 600 {path}, and replace the key if another user may have read it",
        )
    reject_foreign(path)
    try:
        return PrivateKey(key_file.data)
    except FormatError as error:
        raise AttestError(
            f"{path}: {error.message}", hint="the key must be Ed25519, without a passphrase"
        ) from None
