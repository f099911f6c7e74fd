"""The signature of what is posted to a web hook: GitHub's, over the whole body."""

import hmac
from pathlib import Path

_SECRET_BYTES = 4096

SIGNATURE_HEADER = "X-Hub-Signature-256"


def web_signature(secret_file: Path, body: bytes) -> str:
    """The value of the header; raises `OSError`, or `ValueError` for an empty secret."""
    with secret_file.open("rb") as file:
        secret = file.read(_SECRET_BYTES).strip()
    if not secret:
        raise ValueError(f"{secret_file} is empty")
    return f"sha256={hmac.digest(secret, body, 'sha256').hex()}"
