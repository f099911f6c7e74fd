"""A program that signs: ssh-keygen, which asks the agent, or the administrator's own.

The bytes to sign come on its standard input, the signature on its standard output; no shell.
"""

import os
import subprocess
from collections.abc import Sequence

from huai_server.signing.errors import SigningError

_SHOWN = 300
_HINT = "look at [signing] in server.toml; the last commit is intact"


def run_signer(command: Sequence[str], message: bytes, *, seconds: float) -> bytes:
    """What `command` answers to `message`; `SigningError` if it fails, or takes too long."""
    name = command[0]
    try:
        done = subprocess.run(
            command,
            input=message,
            capture_output=True,
            timeout=seconds,
            check=False,
            # Nobody is there who could be asked for a passphrase.
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SigningError(
            f"{name}: no signature within {seconds:g} s; the agent, or what it asks, hangs",
            hint=_HINT,
        ) from error
    except OSError as error:
        raise SigningError(f"{name}: {error.strerror}", hint=_HINT) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[:_SHOWN]
        raise SigningError(f"{name}: exit code {done.returncode}: {said!r}", hint=_HINT)
    return done.stdout
