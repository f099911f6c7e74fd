"""The output of `huai-server key` about keys."""

import base64
import hashlib
import socket
import time
from pathlib import Path

from huai_program.configuration import ConfigError
from huai_schema.codec.pending import PendingCommit
from huai_server.cli.console import Console
from huai_server.cli.report import totals_values
from huai_server.config.load import config_path, load
from huai_server.config.tables import Signing
from huai_server.signing.cosigned import Examined
from huai_server.signing.keys import ServerKeys

_PRINCIPAL = "huai@localhost"
"""The committer, as each commit has it."""


def signing_of(root: Path) -> Signing:
    """Return the table `[signing]` of server.toml; raises `ConfigError` if it is missing."""
    signing = load(root).signing
    if signing is None:
        raise ConfigError(
            f"{config_path(root)}: [signing] is missing",
            hint="huai-server key new PATH makes a key, and prints what to configure",
        )
    return signing


def key_comment() -> str:
    """Return the comment for a key file, which names this machine."""
    return f"huai@{socket.gethostname()}"


def key_values(public: str) -> dict[str, str]:
    """Return a public key, its fingerprint and its line for a file of allowed signers."""
    return {
        "key": public,
        "fingerprint": fingerprint(public),
        "allowed_signers": f'{_PRINCIPAL} namespaces="git" {public}',
    }


def fingerprint(public: str) -> str:
    """Return the fingerprint of a public key, as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def show_keys(console: Console, path: str, keys: ServerKeys) -> None:
    """Print the trusted keys, the signing one (in the file `path`), and lines for client.toml."""
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


def show_pending(console: Console, pending: PendingCommit, *, signatures: int, needed: int) -> None:
    """Print a pending commit, and the numbers of its signatures and of those needed."""
    console.event("pending", **_pending_values(pending), signatures=signatures, needed=needed)
    info = pending.info
    console.result(f"{info.module}: serial {info.serial}, {signatures} of {needed} signatures")


def show_examined(console: Console, examined: Examined, *, signed: bool) -> None:
    """Print a commit that was verified here, to be signed or just `signed`."""
    pending, former, counts = examined.pending, examined.former, examined.counts
    values = _pending_values(pending)
    since = former.info.serial if former else None
    console.event(
        "cosign",
        **values,
        totals=totals_values(pending.info),
        since=since,
        counts=counts._asdict(),
        keys=list(examined.chain.newest.keys),
        threshold=examined.chain.newest.threshold,
        signed=signed,
    )
    console.result(f"module       {pending.info.module}, {pending.promise.identity}")
    console.result(f"serial       {pending.info.serial}, made {_when(pending.time)}")
    console.result(f"tree         {pending.tree.hex()}")
    console.result(f"listing      blake3:{pending.promise.listing.hex()}")
    console.result(f"valid until  {_when(pending.promise.valid_until)}")
    totals = pending.info.totals
    console.result(f"entries      {totals.entries:,}, {totals.bytes:,} bytes of files")
    console.result(
        f"since {f'serial {since}' if former else 'nothing'}: {counts.added:,} added, "
        f"{counts.changed:,} changed, {counts.removed:,} removed, {counts.moved:,} moved along"
    )
    for key in examined.chain.newest.keys:
        console.result(f"key          {fingerprint(key)}")
    if former is None:
        console.error("the first commit of this module here: compare the keys with the upstream's")


def _pending_values(pending: PendingCommit) -> dict[str, object]:
    """Return a pending commit, for JSON."""
    return {
        "module": pending.info.module,
        "identity": pending.promise.identity,
        "serial": pending.info.serial,
        "tree": pending.tree.hex(),
        "listing": pending.promise.listing.hex(),
        "time": pending.time,
        "valid_until": pending.promise.valid_until,
    }


def _when(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
