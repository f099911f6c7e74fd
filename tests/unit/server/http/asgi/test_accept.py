"""The preferences of a request."""

import pytest

from huai_server.http.asgi.accept import prefers_html


def test_html_is_for_those_who_name_it(subtests: pytest.Subtests) -> None:
    for accept, html in [
        (None, False),
        (b"", False),
        (b"*/*", False),
        (b"application/json", False),
        (b"text/html", True),
        (b"TEXT/HTML;Q=0.1", True),
        (b"text/html;level=1;q=0", False),
        (b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        (b"application/json, text/html;q=0.9", False),
        (b"application/json;q=0.5, text/html", True),
        (b"text/html, application/json", False),
        (b"text/html;q=x", False),
        (b"\xff;;,,q=", False),
        (b"x" * 300 + b",text/html", False),
    ]:
        with subtests.test(accept=accept, html=html):
            headers = [(b"host", b"text/html"), *([] if accept is None else [(b"accept", accept)])]
            assert prefers_html(headers) == html
