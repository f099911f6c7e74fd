"""A notification as a POST of JSON, signed as GitHub signs web hooks."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from huai_program.notify.notification import Notification, one_line
from huai_program.notify.settings import Web
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
