"""Tells a notification: by mail, by a web hook, by a program; each within a bound of time.

Rules:

- What hangs is left behind, in a thread that keeps no program from ending.
- A password and a secret are read at the moment of use, and stand in no message.
"""

import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from huai_program.notify.notification import Notification, one_line
from huai_program.notify.settings import Notify, Web
from huai_program.web_signature import SIGNATURE_HEADER, web_signature
from huai_schema import __version__


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """A redirection is no answer: a POST is not repeated elsewhere."""

    def redirect_request(self, *_: object) -> None:
        return None


def post(web: Web, seconds: int, told: Notification) -> str:
    """Send it; returns why that failed, or nothing, without the path of the URL: it is secret."""
    host = urlsplit(web.url).netloc.rpartition("@")[2]
    try:
        request = _request(web, told)
        opener = urllib.request.build_opener(_NoRedirection)
        with opener.open(request, timeout=seconds):
            return ""
    except urllib.error.HTTPError as error:
        error.close()
        return f"{host}: HTTP {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        return one_line(f"{host}: {getattr(error, 'reason', error)}")


def _request(web: Web, told: Notification) -> urllib.request.Request:
    body = json.dumps(told.values()).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"{told.about.program}/{__version__}",
        "X-Huai-Event": told.event,
    }
    if web.secret_file:
        headers[SIGNATURE_HEADER] = web_signature(Path(web.secret_file), body)
    return urllib.request.Request(web.url, body, headers, method="POST")  # noqa: S310 - http(s)


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
