"""Posts JSON to a web hook by libcurl.

Rules: redirects are not followed, because a POST must not be repeated elsewhere; the response is
limited in bytes and seconds, and discarded; no error quotes the path of the URL, which may be
secret.  The signature over the body is GitHub's.
"""

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pycurl

from huai_program.authorities import trust_authorities
from huai_schema import __version__

_CONNECT_SECONDS = 10
_RESPONSE_BYTES = 64 << 10
_SECRET_BYTES = 4096


class PostError(Exception):
    """An error because there was no response, with the reason."""


class Hook(NamedTuple):
    """A web hook, and the program that calls it."""

    url: str
    program: str
    """The name in the header User-Agent."""
    seconds: int
    """Seconds for the whole transfer."""
    secret_file: str = ""
    """The file of the secret that signs the body; empty: it is not signed."""
    addresses: Sequence[str] | None = None
    """Addresses for libcurl's RESOLVE, instead of name servers and proxies; None: use these."""


def post(
    hook: Hook,
    values: Mapping[str, object],
    headers: Mapping[str, str],
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Send `values` as JSON, signed if the hook has a secret; return the status of the response.

    Raises `PostError` without a response, or once `is_over` returns True; `OSError` if the secret
    cannot be read, and `ValueError` if it is empty.
    """
    body = json.dumps(values).encode()
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", "Expect:"]
    if hook.secret_file:
        lines.append(f"X-Hub-Signature-256: {_signature(Path(hook.secret_file), body)}")
    received = 0

    def discard(data: bytes) -> int:
        """Drop data; abort the transfer if it is too long."""
        nonlocal received
        received += len(data)
        return len(data) if received <= _RESPONSE_BYTES else 0

    curl = pycurl.Curl()
    try:
        if hook.addresses is not None:
            curl.setopt(pycurl.RESOLVE, list(hook.addresses))
            curl.setopt(pycurl.NOPROXY, "*")
        for option, value in (
            (pycurl.URL, hook.url),
            (pycurl.USERAGENT, f"{hook.program}/{__version__}"),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.NOSIGNAL, 1),
            (pycurl.CONNECTTIMEOUT, min(_CONNECT_SECONDS, hook.seconds)),
            (pycurl.TIMEOUT, hook.seconds),
            (pycurl.HTTPHEADER, lines),
            (pycurl.POST, 1),
            (pycurl.POSTFIELDS, body),
            (pycurl.WRITEFUNCTION, discard),
            (pycurl.HEADERFUNCTION, discard),
            (pycurl.NOPROGRESS, 0),
            (pycurl.XFERINFOFUNCTION, lambda *_: int(is_over())),
        ):
            curl.setopt(option, value)
        trust_authorities(curl)
        curl.perform()
        return int(curl.getinfo(pycurl.RESPONSE_CODE))
    except pycurl.error as error:
        raise PostError(str(error.args[-1])) from error
    finally:
        curl.close()


def _signature(secret_file: Path, body: bytes) -> str:
    """Return the HMAC of `body` for its header; `ValueError` if the secret is empty."""
    with secret_file.open("rb") as file:
        secret = file.read(_SECRET_BYTES).strip()
    if not secret:
        raise ValueError(f"{secret_file} is empty")
    return f"sha256={hmac.digest(secret, body, 'sha256').hex()}"
