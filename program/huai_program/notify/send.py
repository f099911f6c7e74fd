"""Tells a notification: by mail, by a web hook, by a program; each within a bound of time.

Rules:

- What hangs is left behind, in a thread that keeps no program from ending.
- A password and a secret are read at the moment of use, and stand in no message.
"""

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

from huai_program.notify.notification import Notification, one_line
from huai_program.notify.settings import Notify, Web


def post(web: Web, seconds: int, told: Notification) -> str:
    """Send it; returns why that failed, or nothing, without the path of the URL: it is secret."""
    from huai_program import post as web_hook  # loads libcurl

    host = urlsplit(web.url).netloc.rpartition("@")[2]
    try:
        hook = web_hook.Hook(web.url, told.about.program, seconds, web.secret_file)
        status = web_hook.post(hook, told.values(), {"X-Huai-Event": told.event})
    except (OSError, ValueError, web_hook.PostError) as error:
        return one_line(f"{host}: {error}")
    return "" if status in _GOOD else f"{host}: HTTP {status}"


_GOOD = range(200, 300)
Way = Callable[[Notification], str]
"""Tells one; returns why that failed, or nothing."""


def tell(notify: Notify, told: Notification, warn: Callable[[str], None]) -> bool:
    """Tell all whom `notify` names; whether anybody heard.  `warn` hears why somebody did not."""
    failures = send(notify, told)
    for key, reason in failures.items():
        warn(f"notify.{key}: nobody was told that it {told.event}: {reason}")
    ways = bool(notify.mail) + bool(notify.web) + bool(notify.words)
    return len(failures) < ways


def send(notify: Notify, told: Notification) -> dict[str, str]:
    """Tell all whom `notify` names, at the same time; by key of `[notify]`, why one was not."""
    reasons: dict[str, str] = {}
    threads = []
    for key, way in _ways(notify):
        reasons[key] = f"it took longer than {notify.timeout} s"
        work = partial(_tell, reasons, key, way, told)
        threads.append(threading.Thread(target=work, daemon=True, name=f"notify-{key}"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(notify.timeout)
    return {key: reason for key, reason in list(reasons.items()) if reason}


def _tell(reasons: dict[str, str], key: str, way: Way, told: Notification) -> None:
    try:
        reasons[key] = way(told)
    except Exception as error:  # noqa: BLE001 - no failure to tell may become one of the run
        reasons[key] = f"{type(error).__name__}: {error}"


def _ways(notify: Notify) -> Iterator[tuple[str, Way]]:
    if notify.mail:
        from huai_program.notify.mail import send_mail

        yield "mail", partial(send_mail, notify.mail, notify.timeout)
    if notify.web:
        yield "web", partial(post, notify.web, notify.timeout)
    if notify.words:
        yield "command", partial(_run, notify.words, notify.timeout)


def _run(command: tuple[str, ...], seconds: int, told: Notification) -> str:
    from huai_program.programs import environment, run_program

    values = {f"HUAI_{name.upper()}": str(value) for name, value in told.values().items()}
    values["HUAI_TITLE"] = told.title
    own = environment(os.environ, values)
    return run_program(command, own, seconds=seconds, hear=lambda _line: None)
