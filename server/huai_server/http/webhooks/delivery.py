"""One attempt to tell a web hook of a commit: a signed POST, by libcurl.

The signature is GitHub's (`X-Hub-Signature-256`), over the whole body, in which the moment of
sending stands: whoever checks both takes no old request for a new one.

Rules:

- The name is resolved once; unless the configuration allows it, no address of this network is
  connected to, and no redirection is followed.
- What the other side answers has a bound, in bytes and in seconds, and is thrown away.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pycurl

from huai_program.web_signature import SIGNATURE_HEADER, web_signature
from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError
from huai_server.http.addresses import NoAddressError, for_libcurl
from huai_server.http.settings import WebHook

_CONNECT_SECONDS, _SECONDS = 10, 30
_ANSWER_BYTES = 64 << 10
_GOOD = range(200, 300)
_PASSING = {408, 425, 429}
_OF_THE_SERVER = 500
"""From this status on another attempt may help."""


class DeliveryError(HuaiError):
    """A web hook was not told."""

    exit_code = ExitCode.NETWORK

    def __init__(self, message: str, *, may_pass: bool, hint: str = "") -> None:
        """`may_pass`: whether another attempt may help."""
        super().__init__(message, hint=hint)
        self.may_pass = may_pass


def shown(url: str) -> str:
    """Where a hook is, for a log: paths and queries of hooks are often secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def deliver(
    hook: WebHook, said: Mapping[str, object], identity: str, is_over: Callable[[], bool]
) -> None:
    """Tell `hook` what is `said`, once; `is_over` is asked now and then whether to stop.

    `identity` names the delivery, whichever attempt it is.  Every failure is a `DeliveryError`.
    """
    sent = int(time.time())
    body = json.dumps({**said, "delivery": identity, "sent": sent}).encode()
    headers = [
        "Content-Type: application/json",
        f"User-Agent: huai-server/{__version__}",
        "X-Huai-Event: commit",
        f"X-Huai-Delivery: {identity}",
        f"{SIGNATURE_HEADER}: {_signature(hook.secret_file, body)}",
        "Expect:",
    ]
    status = _post(hook, body, headers, is_over)
    if status not in _GOOD:
        raise DeliveryError(
            f"HTTP {status}", may_pass=status in _PASSING or status >= _OF_THE_SERVER
        )


def _post(hook: WebHook, body: bytes, headers: list[str], is_over: Callable[[], bool]) -> int:
    curl = pycurl.Curl()
    received = 0

    def take(data: bytes) -> int:
        nonlocal received
        received += len(data)
        return len(data) if received <= _ANSWER_BYTES else 0

    try:
        for option, value in (
            (pycurl.URL, hook.url),
            (pycurl.RESOLVE, _addresses(hook)),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.NOPROXY, "*"),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.NOSIGNAL, 1),
            (pycurl.CONNECTTIMEOUT, _CONNECT_SECONDS),
            (pycurl.TIMEOUT, _SECONDS),
            (pycurl.HTTPHEADER, headers),
            (pycurl.POST, 1),
            (pycurl.POSTFIELDS, body),
            (pycurl.WRITEFUNCTION, take),
            (pycurl.HEADERFUNCTION, take),
            (pycurl.NOPROGRESS, 0),
            (pycurl.XFERINFOFUNCTION, lambda *_: int(is_over())),
        ):
            curl.setopt(option, value)
        curl.perform()
        return int(curl.getinfo(pycurl.RESPONSE_CODE))
    except pycurl.error as error:
        raise DeliveryError(str(error.args[-1]), may_pass=True) from error
    finally:
        curl.close()


def _signature(path: str, body: bytes) -> str:
    try:
        return web_signature(Path(path), body)
    except OSError as error:
        raise DeliveryError(
            f"{path}: {error.strerror}", may_pass=False, hint="let the user of serve read it"
        ) from error
    except ValueError as error:
        raise DeliveryError(str(error), may_pass=False, hint="write a secret into it") from None


def _addresses(hook: WebHook) -> list[str]:
    try:
        return for_libcurl(hook.url, internal=hook.internal)
    except NoAddressError as error:
        raise DeliveryError(error.message, may_pass=error.may_pass, hint=error.hint) from error
