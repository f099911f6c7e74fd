"""How `huai-server key` tells of keys."""

import base64
import hashlib
import socket
from pathlib import Path

from huai_schema.program.configuration import ConfigError
from huai_server.cli.console import Console
from huai_server.config import config_path, load
from huai_server.config_tables import Signing
from huai_server.signing.keys import ServerKeys

_PRINCIPAL = "huai@localhost"
"""Who commits, as each commit says."""


def signing_of(root: Path) -> Signing:
    """What server.toml says of signing; `ConfigError` if nothing."""
    signing = load(root).signing
    if signing is None:
        raise ConfigError(
            f"{config_path(root)}: there is no [signing]",
            hint="huai-server key new PATH makes a key, and says what to write",
        )
    return signing


def comment() -> str:
    """What tells people in a key file whose it is."""
    return f"huai@{socket.gethostname()}"


def key_values(public: str) -> dict[str, str]:
    """A public key as others are told of it."""
    return {
        "key": public,
        "fingerprint": fingerprint(public),
        "allowed_signers": f'{_PRINCIPAL} namespaces="git" {public}',
    }


def fingerprint(public: str) -> str:
    """As `ssh-keygen -l` shows it."""
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def show_keys(console: Console, path: str, keys: ServerKeys) -> None:
    """Print the keys that count."""
    newest = keys.chain.newest
    needed = f", {newest.threshold} of {len(newest.keys)} sign" if newest.threshold > 1 else ""
    console.result(f"version {newest.version} of the keys{needed}")
    for public in newest.keys:
        signs = public == keys.signer.public
        values = key_values(public)
        console.event("key", path=path, version=newest.version, signs=signs, **values)
        console.result(f"fingerprint      {values['fingerprint']}{'  (signs)' if signs else ''}")
        console.result(f"allowed_signers  {values['allowed_signers']}")
    listed = ", ".join(f'"{key}"' for key in newest.keys)
    console.result(f"client.toml      keys = [{listed}]")
    if newest.threshold > 1:
        console.result(f"                 threshold = {newest.threshold}")
