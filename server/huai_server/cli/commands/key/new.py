"""`huai-server key new`: make a private key."""

from pathlib import Path

import click

from huai_server.cli.console import Console
from huai_server.cli.key_report import comment, key_values
from huai_server.cli.options import console_options
from huai_server.config.load import config_path
from huai_server.signing.keys import make_key


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@console_options()
@click.pass_obj
def command(root: Path, path: Path, console: Console) -> None:
    """Make a key that signs commits, and write it to PATH, readable by its owner only.

    The file is an OpenSSH key, Ed25519, without a passphrase. Name it in server.toml, as `key` of
    [signing]: from the next commit on, all modules are signed.
    """
    path = path.absolute()
    public = make_key(path, comment())
    console.event("key", path=str(path), version=0, signs=False, **key_values(public))
    console.result(f"{path}: a new key, {key_values(public)['fingerprint']}")
    console.result(f"write into {config_path(root)}, then commit:")
    console.result(f'[signing]\nkey = "{path}"')
