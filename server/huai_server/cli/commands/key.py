"""`huai-server key`: make, show and replace the keys that sign commits, and sign elsewhere."""

from pathlib import Path

import click

from huai_native._native import parse_public_key
from huai_program.cli.group import Group
from huai_program.cli.options import wait_option
from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_schema.codec.signing import SIGNATURE_FILE_BYTES
from huai_schema.errors import ExitCode, FormatError
from huai_server.actions import modules
from huai_server.cli.after_commit_report import show_after_commit
from huai_server.cli.console import Console
from huai_server.cli.key_report import (
    key_comment,
    key_values,
    show_examined,
    show_keys,
    show_pending,
    signing_of,
)
from huai_server.cli.options import console_options
from huai_server.config.load import config_path
from huai_server.signing import keys
from huai_server.signing.cosigned import examine, sign
from huai_server.signing.signer import open_signer
from huai_server.state.errors import storage_errors


@click.group(cls=Group)
def command() -> None:
    """Make, show and replace the keys that sign commits, and sign elsewhere."""


@command.command()
@click.argument("name")
@click.argument("signature", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@wait_option("a commit")
@console_options()
def attach(root: Path, name: str, signature: Path, wait: float, console: Console) -> int:
    """Add a SIGNATURE to the commit of NAME that waits for it.

    The file is made by `huai-server key cosign`. With the last signature that is needed, the commit
    is published. A signature of anything else, or by a key that does not count, is refused (exit
    code 57).
    """
    with storage_errors(signature), signature.open("rb") as file:
        data = file.read(SIGNATURE_FILE_BYTES)
    done = modules.attach_signature(root, name, data, wait=wait)
    show_pending(console, done.pending, signatures=done.signatures, needed=done.needed)
    if done.head is None:
        return ExitCode.OK
    console.result(f"{name}: published, commit {done.head.commit}")
    show_after_commit(console, name, done.after, done.head)
    return done.after.exit_code


@command.command()
@console_options()
def configure(root: Path, console: Console) -> None:
    """Apply the cosigners and the threshold of server.toml.

    Run this after a change of `cosigners` or `threshold`. All keys in server.toml sign the change,
    and among them must be as many of the present keys as commits need now.
    """
    signing = signing_of(root)
    show_keys(console, signing.key, keys.configure(root, signing))


_PERMISSIONS = 0o644


@command.command()
@click.argument("request", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Sign the commit, and write the signature to FILE; without this it is only shown.",
)
@console_options()
def cosign(root: Path, request: Path, output: Path | None, console: Console) -> None:
    """Show the commit in REQUEST, a file of `huai-server key pending`, and sign it.

    Run this on the machine that holds the key, that of [signing] in its server.toml. The commit is
    read back whole, and refused (exit code 57) if a client would refuse it, if its keys do not
    follow from those of the commit signed before, or if its serial was signed before.
    """
    signer = open_signer(signing_of(root))
    if output is None:
        show_examined(console, examine(root, request, signer), signed=False)
        return
    examined, signature = sign(root, request, signer)
    show_examined(console, examined, signed=True)
    with storage_errors(output):
        unfinished = output.with_name(TEMPORARY + output.name)
        replace_file(output, signature, unfinished, permissions=_PERMISSIONS)
    console.result(f"signed: {output}")


@command.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@console_options()
def new(root: Path, path: Path, console: Console) -> None:
    """Make a key that signs commits, and write it to PATH, readable by its owner only.

    The file is an OpenSSH key, Ed25519, without a passphrase. Name it in server.toml, as `key` of
    [signing]: from the next commit on, all modules are signed.
    """
    path = path.absolute()
    public = keys.make_key(path, key_comment())
    console.event("key", path=str(path), version=0, signs=False, **key_values(public))
    console.result(f"{path}: a new key, {key_values(public)['fingerprint']}")
    console.result(f"write into {config_path(root)}, then commit:")
    console.result(f'[signing]\nkey = "{path}"')


@command.command()
@click.argument("name")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@console_options()
def pending(root: Path, name: str, output: Path, console: Console) -> None:
    """Write the commit of NAME that waits for signatures to a file.

    OUTPUT is readable by its owner only, and holds everything that the commit lists. On the
    cosigner's machine, pass it to `huai-server key cosign`.
    """
    done = modules.write_pending(root, name, output.absolute())
    show_pending(console, done.pending, signatures=done.signatures, needed=done.needed)
    console.result(f"{name}: written to {output}")


@command.command()
@click.argument("key")
@console_options()
def revoke(root: Path, key: str, console: Console) -> None:
    """Stop accepting signatures by KEY, "ssh-ed25519 AAAA…".

    For a key that `huai-server key rotate --keep` left, or one that was stolen.
    """
    signing = signing_of(root)
    try:
        public = parse_public_key(key)
    except FormatError as error:
        raise click.BadParameter(error.message) from None
    show_keys(console, signing.key, keys.revoke(root, signing, public))


@command.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="NEW.pub",
    help="The new public key, if an agent or a command signs, which must have the private key.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Let signatures of the old key count as well, until `huai-server key revoke` ends it.",
)
@console_options()
def rotate(root: Path, to: Path | None, keep: bool, console: Console) -> None:
    """Replace the key in server.toml by a new one.

    Downstreams learn of it from the next commit, and follow by themselves: the old key signs the
    new one. Those that were offline for long follow each step.
    """
    signing = signing_of(root)
    new_keys = keys.rotate(root, signing, key_comment(), to=to and to.absolute(), keep=keep)
    show_keys(console, signing.key, new_keys)


@command.command()
@console_options()
def show(root: Path, console: Console) -> None:
    """Show the keys whose signatures count.

    Of each, shows its fingerprint, its line for a file of allowed signers (`git verify-commit`,
    `ssh-keygen -Y verify`), and the line of client.toml for downstreams.
    """
    show_keys(console, signing_of(root).key, keys.open_keys(root, signing_of(root)))
