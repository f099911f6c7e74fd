"""The keys that client.toml names: a list, or a file of allowed signers (ssh-keygen(1))."""

import re
from pathlib import Path

from huai_client.config.load import Module
from huai_native._native import parse_public_key
from huai_program.configuration import ConfigError
from huai_schema.errors import FormatError

_FILE_BYTES = 1 << 20
_KEY = re.compile(r"(?:^|[ \t])(ssh-ed25519[ \t]+[^ \t]+)")
_NAMESPACES = re.compile(r'namespaces="([^"]*)"', re.IGNORECASE)
_UNKNOWN = re.compile(r"cert-authority|valid-(?:after|before)", re.IGNORECASE)


def configured_keys(module: Module) -> tuple[str, ...]:
    """Return the keys, each in canonical spelling; `ConfigError` for a malformed one."""
    lines = [(f"keys: {line!r}", line) for line in module.keys]
    if module.signers:
        lines += _read(Path(module.signers))
    return tuple(dict.fromkeys(_parsed(place, line) for place, line in lines))


def _parsed(place: str, line: str) -> str:
    try:
        return parse_public_key(line)
    except FormatError as error:
        raise ConfigError(
            f"{place}: {error.reason}", hint="the upstream's huai-server key show prints the line"
        ) from None


def _read(path: Path) -> list[tuple[str, str]]:
    """Return the Ed25519 keys for git in a file; `ConfigError` for an unknown option."""
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
                f"{place}: an unknown option",
                hint='only namespaces="git" is allowed before a key',
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
