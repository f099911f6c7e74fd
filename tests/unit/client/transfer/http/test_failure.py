"""The meaning of libcurl's errors, by their numbers."""

from urllib.parse import urlsplit

import pycurl
import pytest

from huai_client.config.proxies import Proxy
from huai_client.metadata.curl.errors import CurlError
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    UnreachableError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.http.failure import failure_of, is_permanent
from huai_client.transfer.urls import ContentUrl

URL = ContentUrl.parse("https://h/m")


def test_errors(subtests: pytest.Subtests) -> None:
    for number, kind, lasting in [
        (pycurl.E_COULDNT_RESOLVE_HOST, UnreachableError, True),
        (pycurl.E_COULDNT_CONNECT, UnreachableError, True),
        (pycurl.E_OPERATION_TIMEDOUT, UpstreamSilentError, False),
        (pycurl.E_SSL_CACERT, UpstreamRefusedError, True),
        (pycurl.E_SSL_CACERT_BADFILE, UpstreamRefusedError, True),
        (pycurl.E_SSL_CONNECT_ERROR, ConnectionBrokenError, False),
        (pycurl.E_UNSUPPORTED_PROTOCOL, UpstreamRefusedError, True),
        (pycurl.E_PARTIAL_FILE, ConnectionBrokenError, False),
        (pycurl.E_RECV_ERROR, ConnectionBrokenError, False),
        (pycurl.E_GOT_NOTHING, ConnectionBrokenError, False),
        (pycurl.E_HTTP2, ConnectionBrokenError, False),
    ]:
        with subtests.test(number=number, kind=kind, lasting=lasting):
            error = failure_of(CurlError(number, "it \x1b[31mbroke"), URL)
            assert type(error) is kind
            assert "\x1b" not in error.message
            assert error.hint
            assert is_permanent(number) is lasting


def test_a_message_is_the_same_at_each_attempt() -> None:
    for text in (
        "Failed to connect to h port 1 after 0 ms: Couldn't connect to server",
        "Failed to connect to h port 1 after 12 ms: Could not connect to server",
    ):
        error = failure_of(CurlError(7, text, "Connection refused"), URL)
        message = "Failed to connect to h port 1: Connection refused (libcurl 7)"
        assert error.message == f"https://h/m/: {message}"


def test_a_proxy_that_cannot_be_reached_is_named() -> None:
    proxy = Proxy("https_proxy", urlsplit("http://me:secret@p:3128"))
    error = failure_of(CurlError(7, "Failed to connect to p port 3128"), URL, proxy)
    assert error.message.startswith("https://h/m/: the proxy http://p:3128 of https_proxy: Failed")
    assert "https_proxy" in error.hint
