"""Fuzzed HTTP responses of a web server, redirects, and the client's own headers."""

from huai_client.metadata.curl.head import RedirectionError, read_head, redirect_target
from huai_client.transfer.http.login import read_headers
from huai_client.transfer.http.verdict import Meaning, RequestedRange, judge
from huai_client.transfer.options import TransferOptionsError
from tests.fuzz.folder import folder
from tests.fuzz.target import Outcome, Target

_NOW = 1_700_000_000.0
_ASKED = (
    RequestedRange(0, 1000, 1000),
    RequestedRange(400, 1000, 1000),
    RequestedRange(400, 500, 1000, from_start=False),
    RequestedRange(0, 10, 10, proved=False, changes=True),
)


_FILE = folder("headers") / "file"


def _head(data: bytes) -> object:
    """The first digit says what was asked for; what is taken is within it."""
    headers = _ASKED[data[0] % len(_ASKED) if data else 0]
    answer = judge(read_head(data[1:]), headers, _NOW)
    if answer.meaning is Meaning.TAKE:
        assert answer.begins in (0, headers.first)
        assert answer.begins + answer.most <= headers.most
    return Outcome((answer.meaning, answer.retry_after > 0, answer.modified is None))


def _location(data: bytes) -> object:
    """A line for where it comes from, and what it says."""
    base, _, location = data.decode("latin-1").partition("\n")
    address = "https://h/a" if base else "http://h:8/a"
    target = redirect_target(address, location)
    assert target.isascii()
    assert target.isprintable()
    assert target.startswith(("https://",) if base else ("http://", "https://"))
    return target.partition(":")[0]


def _headers(data: bytes) -> object:
    _FILE.write_bytes(data)
    _FILE.chmod(0o600)
    lines = read_headers(_FILE)
    assert all(line.isascii() and line.isprintable() for line in lines)
    return len(lines) > 0


CONTENT = {
    "content-head": Target(
        _head,
        (),
        [
            b"0HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
            b"0HTTP/1.1 200 OK\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n",
            b"1HTTP/2 206 \r\ncontent-range: bytes 400-999/1000\r\ncontent-length: 600\r\n\r\n",
            b"2HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 400-499/*\r\n\r\n",
            b"3HTTP/1.0 200 OK\r\nContent-Encoding: identity\r\n\r\n",
            b"0HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n\r\n",
            b"0HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n",
        ],
        words=(b"HTTP/1.1 ", b"\r\n", b"Content-Encoding: gzip", b"Content-Range: bytes "),
    ),
    "content-location": Target(
        _location,
        (RedirectionError,),
        [b"s\nhttps://other/a?b", b"\n//other:1/x", b"\n../b c", b"s\n?q"],
        words=(b"http://", b"https://", b"//", b"@", b"file:", b"[::1]", b"%2e"),
    ),
    "content-headers": Target(
        _headers, (TransferOptionsError,), [b"# a token\nX-Token: abc\n\nA: b\n"]
    ),
}
