"""Sends a notification by mail, web hook and program, each within a time-out.

Rules:

- A mail or request that hangs is abandoned, in a thread that keeps no program from ending.
- The command runs in the caller's thread, where a time-out or a signal ends it.
- Passwords and secrets are read when used, and are in no message.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

from huai_program.notify.notification import Notification, one_line
from huai_program.notify.settings import Notify, Web


def post_to(web: Web, seconds: int, notification: Notification) -> str:
    """Post a notification to a web hook; return the reason of a failure, or an empty text.

    The reason does not contain the URL's path, which may be secret.
    """
    from huai_program import post as web_hook  # loads libcurl

    host = urlsplit(web.url).netloc.rpartition("@")[2]
    try:
        hook = web_hook.Hook(web.url, notification.about.program, seconds, web.secret_file)
        status = web_hook.post(hook, notification.values(), {"X-Huai-Event": notification.event})
    except (OSError, ValueError, web_hook.PostError) as error:
        return one_line(f"{host}: {error}")
    return "" if status in _GOOD else f"{host}: HTTP {status}"


_GOOD = range(200, 300)
Way = Callable[[Notification], str]
"""A function that sends a notification, and returns the reason of a failure or an empty text."""


def notify_all(notify: Notify, notification: Notification, warn: Callable[[str], None]) -> bool:
    """Send by all ways of `notify`; True if one worked.  `warn` gets each failure."""
    failures = send_all(notify, notification)
    for key, reason in failures.items():
        warn(f"notify.{key}: the message ({notification.event}) was not delivered: {reason}")
    ways = bool(notify.mail) + bool(notify.web) + bool(notify.words)
    return len(failures) < ways


def send_all(notify: Notify, notification: Notification) -> dict[str, str]:
    """Send by all ways of `notify` at once; return the reasons of failures by key.

    One that takes longer than its time-out is a failure.
    """
    reasons: dict[str, str] = {}
    threads = []
    deadline = time.monotonic() + notify.timeout
    for key, way in ways(notify):
        reasons[key] = f"it took longer than {notify.timeout} s"
        work = partial(_send_by, reasons, key, way, notification)
        if key == "command":  # the last one
            work()
        else:
            threads.append(threading.Thread(target=work, daemon=True, name=f"notify-{key}"))
            threads[-1].start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return {key: reason for key, reason in list(reasons.items()) if reason}


def _send_by(reasons: dict[str, str], key: str, way: Way, notification: Notification) -> None:
    """Send a notification; put the reason of a failure, or an empty one, into `reasons`."""
    try:
        reasons[key] = way(notification)
    except Exception as error:  # noqa: BLE001 - must not fail the run
        reasons[key] = f"{type(error).__name__}: {error}"


def ways(notify: Notify) -> Iterator[tuple[str, Way]]:
    """Yield each configured way of `[notify]` with its key: `mail`, `web`, and last `command`."""
    if notify.mail:
        from huai_program.notify.mail import send_mail

        yield "mail", partial(send_mail, notify.mail, notify.timeout)
    if notify.web:
        yield "web", partial(post_to, notify.web, notify.timeout)
    if notify.words:
        yield "command", partial(_run, notify.words, notify.timeout)


def _run(command: tuple[str, ...], seconds: int, notification: Notification) -> str:
    """Run the command of `[notify]`; return the reason of its failure, or an empty text."""
    from huai_program.programs import environment, run_program

    values = {f"HUAI_{name.upper()}": str(value) for name, value in notification.values().items()}
    values["HUAI_TITLE"] = notification.title
    own = environment(os.environ, values)
    return run_program(command, own, seconds=seconds, on_line=lambda _line: None)
