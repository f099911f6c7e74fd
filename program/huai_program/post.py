"""One POST of JSON to somebody's web hook, by libcurl.

Rules: no redirection is followed, as a POST is not repeated elsewhere; the response has a bound, in
bytes and in seconds, and is thrown away; no error has the path of the URL in it, which may be
secret.  The signature is GitHub's, over the whole body.
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
    """There was no response; the text says why."""


class Hook(NamedTuple):
    """A URL to tell, and the program that tells it."""

    url: str
    program: str
    """Which calls itself so."""
    seconds: int
    """For all of it."""
    secret_file: str = ""
    """Signs what is sent; empty: nothing does."""
    addresses: Sequence[str] | None = None
    """Addresses for libcurl's RESOLVE, in place of name servers and proxies; None: these."""


def post(
    hook: Hook,
    values: Mapping[str, object],
    headers: Mapping[str, str],
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """Send `values`, and return the status of the response; `is_over` may end it.

    Raises `PostError` if there is no response, `OSError` for a secret that cannot be read, and
    `ValueError` for one that is empty.
    """
    body = json.dumps(values).encode()
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", "Expect:"]
    if hook.secret_file:
        lines.append(f"X-Hub-Signature-256: {_signature(Path(hook.secret_file), body)}")
    received = 0

    def take(data: bytes) -> int:
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
            (pycurl.WRITEFUNCTION, take),
            (pycurl.HEADERFUNCTION, take),
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
    with secret_file.open("rb") as file:
        secret = file.read(_SECRET_BYTES).strip()
    if not secret:
        raise ValueError(f"{secret_file} is empty")
    return f"sha256={hmac.digest(secret, body, 'sha256').hex()}"
