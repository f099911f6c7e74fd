"""Any bytes in a header give a response other than a failure of the server.

Through uvicorn into the application, as the fuzz target "server" has them: it asserts that each
answer is well-formed and below 500, and that nothing is logged as an error.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fuzz.server import SERVER

PATHS = [
    "/",
    "/login",
    "/metrics",
    "/openapi.json",
    "/api/v1/modules",
    "/modules/m",
    "/content/c/d/f",
    "/content/c/missing",
    "/git/m.git/info/refs?service=git-upload-pack",
    "/git/m.git/static/head",
]
NAMES = [
    *("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Content-Encoding"),
    *("Content-Length", "Cookie", "Git-Protocol", "Host", "If-Match", "If-Modified-Since"),
    *("If-None-Match", "If-Range", "If-Unmodified-Since", "Last-Event-ID", "Origin", "Range"),
    *("Referer", "Transfer-Encoding", "Upgrade", "X-Forwarded-For", "X-Forwarded-Proto"),
]
VALUES = st.binary(max_size=100) | st.builds(
    bytes.__add__,
    st.sampled_from([b"Basic ", b"Bearer ", b"bytes=", b'W/"', b"version=", b"gzip;q="]),
    st.binary(max_size=40),
)


@pytest.mark.parametrize("path", PATHS)
@given(st.sampled_from(NAMES), VALUES)
@example("Authorization", b"Basic \xff\xff")
@example("Range", b"bytes=\xb2-")
@example("If-Modified-Since", b"Sun, 06 Nov 99999 08:49:37 GMT")
def test_any_bytes_in_any_header_give_an_answer(path: str, name: str, value: bytes) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: h\r\n{name}: ".encode()
    SERVER["server"].run(head + value + b"\r\n\r\n")
