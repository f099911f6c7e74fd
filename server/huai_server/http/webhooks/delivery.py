"""One attempt to tell a web hook of a commit: a signed POST.

The signature is over the whole body, in which the moment of sending stands: whoever checks both
takes no old request for a new one.

Rule: the name is resolved once; unless the configuration allows it, no address of this network is
connected to.
"""

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from huai_program.post import Hook, PostError, post
from huai_schema.errors import ExitCode, HuaiError
from huai_server.http.addresses import NoAddressError, for_libcurl
from huai_server.http.settings import WebHook

_SECONDS = 30
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
    try:
        status = post(
            Hook(hook.url, "huai-server", _SECONDS, hook.secret_file, _addresses(hook)),
            {**said, "delivery": identity, "sent": int(time.time())},
            {"X-Huai-Event": "commit", "X-Huai-Delivery": identity},
            is_over,
        )
    except PostError as error:
        raise DeliveryError(str(error), may_pass=True) from error
    except OSError as error:
        raise DeliveryError(
            f"{hook.secret_file}: {error.strerror}",
            may_pass=False,
            hint="let the user of serve read it",
        ) from error
    except ValueError as error:
        raise DeliveryError(str(error), may_pass=False, hint="write a secret into it") from None
    if status not in _GOOD:
        raise DeliveryError(
            f"HTTP {status}", may_pass=status in _PASSING or status >= _OF_THE_SERVER
        )


def _addresses(hook: WebHook) -> list[str]:
    try:
        return for_libcurl(hook.url, internal=hook.internal)
    except NoAddressError as error:
        raise DeliveryError(error.message, may_pass=error.may_pass, hint=error.hint) from error
