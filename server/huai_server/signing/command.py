"""Running a program that signs: ssh-keygen with the agent, or the administrator's.

It reads the bytes to sign on its standard input, and writes the signature; no shell.
"""

import os
import subprocess
from collections.abc import Sequence

from huai_server.signing.errors import SigningError

_SHOWN = 300
_HINT = "check [signing] in server.toml; the last commit is intact"


def run_signer(command: Sequence[str], message: bytes, *, seconds: float) -> bytes:
    """Return the signature of `message`; raises `SigningError` if `command` fails or hangs."""
    name = command[0]
    try:
        done = subprocess.run(
            command,
            input=message,
            capture_output=True,
            timeout=seconds,
            check=False,
            # A passphrase cannot be entered.
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SigningError(
            f"{name}: no signature within {seconds:g} s; the agent or its device hangs",
            hint=_HINT,
        ) from error
    except OSError as error:
        raise SigningError(f"{name}: {error.strerror}", hint=_HINT) from error
    if done.returncode:
        output = done.stderr.decode("utf-8", "replace").strip()[:_SHOWN]
        raise SigningError(f"{name}: exit code {done.returncode}: {output!r}", hint=_HINT)
    return done.stdout
