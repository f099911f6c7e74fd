"""What libcurl's errors mean: by the numbers that it has them under."""

import pycurl
import pytest

from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.http.failure import failure_of, is_lasting
from huai_client.transfer.urls import ContentUrl

URL = ContentUrl.parse("https://h/m")


@pytest.mark.parametrize(
    ("number", "kind", "lasting"),
    [
        (pycurl.E_COULDNT_RESOLVE_HOST, ConnectionBrokenError, True),
        (pycurl.E_COULDNT_CONNECT, ConnectionBrokenError, True),
        (pycurl.E_OPERATION_TIMEDOUT, UpstreamSilentError, False),
        (pycurl.E_SSL_CACERT, UpstreamRefusedError, True),
        (pycurl.E_SSL_CACERT_BADFILE, UpstreamRefusedError, True),
        (pycurl.E_SSL_CONNECT_ERROR, ConnectionBrokenError, False),
        (pycurl.E_UNSUPPORTED_PROTOCOL, UpstreamRefusedError, True),
        (pycurl.E_PARTIAL_FILE, ConnectionBrokenError, False),
        (pycurl.E_RECV_ERROR, ConnectionBrokenError, False),
        (pycurl.E_GOT_NOTHING, ConnectionBrokenError, False),
        (pycurl.E_HTTP2, ConnectionBrokenError, False),
    ],
)
def test_errors(number: int, kind: type[TransferError], lasting: bool) -> None:
    error = failure_of(number, "it \x1b[31mbroke", URL)
    assert type(error) is kind
    assert "\x1b" not in error.message
    assert error.hint
    assert is_lasting(number) is lasting
