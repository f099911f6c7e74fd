"""One attempt to notify a web hook of a commit: a signed POST.

The signature covers the whole body, which has the time of sending: a receiver that checks both
cannot be fooled by a replayed request.

Rule: the name is resolved once; an internal address is refused unless the configuration allows it.
"""

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from huai_program.post import Hook, PostError, post
from huai_server.config.tables import WebHook
from huai_server.http.resolver import UnreachableError, for_libcurl

_SECONDS = 30
_GOOD = range(200, 300)
_PASSING = {408, 425, 429}
_OF_THE_SERVER = 500
"""From this status on another attempt may help."""


def origin_of(url: str) -> str:
    """Return scheme and host of a hook for a log: paths and queries of hooks are often secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def deliver(
    hook: WebHook, data: Mapping[str, object], identity: str, is_over: Callable[[], bool]
) -> None:
    """Send `data` to `hook` once; `is_over` is polled for a reason to stop.

    `identity` names the delivery in all its attempts.  Every failure is an `UnreachableError`.
    """
    try:
        addresses = for_libcurl(hook.url, internal=hook.internal)
        status = post(
            Hook(hook.url, "huai-server", _SECONDS, hook.secret_file, addresses),
            {**data, "delivery": identity, "sent": int(time.time())},
            {"X-Huai-Event": "commit", "X-Huai-Delivery": identity},
            is_over,
        )
    except PostError as error:
        raise UnreachableError(str(error), may_pass=True) from error
    except OSError as error:
        raise UnreachableError(
            f"{hook.secret_file}: {error.strerror}",
            may_pass=False,
            hint="make it readable for the user who runs serve",
        ) from error
    except ValueError as error:
        raise UnreachableError(
            str(error), may_pass=False, hint="write the secret into it"
        ) from None
    if status not in _GOOD:
        raise UnreachableError(
            f"HTTP {status}", may_pass=status in _PASSING or status >= _OF_THE_SERVER
        )
