"""Web servers that send something else: none of it is published, and a message says so."""

import os
import shutil
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.run.options import Deadline
from huai_client.staging import Staging
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UnansweredError,
    UpstreamFullError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.fetch import fetch
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from tests.support.certificate import make_certificate
from tests.support.listening import listening
from tests.support.nginx import nginx
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.transfers import TEST_OPTIONS, Downstream, Recorder, put_many, write_file
from tests.support.weak_network import Weakness, silent, weak

CONTENT = os.urandom(300_000)
PAGE = b"<html>Please log in</html>"


def spoil(content: bytes, at: int) -> bytes:
    """Change one byte."""
    return content[:at] + bytes((content[at] ^ 1,)) + content[at + 1 :]


@pytest.fixture(name="file")
def file_of_the_upstream(upstream: Path) -> File:
    return write_file(upstream, b"d/file", CONTENT)


def partial(range_: str, body: bytes, *, counted: bool = True) -> Reply:
    headers = (f"Content-Range: bytes {range_}",) if range_ else ()
    return Reply("206 Partial Content", headers, body, counted=counted)


def copy_tree(upstream: Path) -> Path:
    return Path(shutil.copytree(upstream, upstream.with_name("copy")))


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=PAGE, headers=("Content-Type: text/html",)),
        Reply(body=PAGE, counted=False),
        Reply(body=b""),
        Reply(body=b"", counted=False),
        Reply(body=CONTENT[:-1]),
        Reply(body=CONTENT[:-1], counted=False),
        Reply(body=CONTENT + b"x"),
        Reply(body=CONTENT + b"x" * 10**6, counted=False),
        Reply(body=spoil(CONTENT, 150_000)),
        Reply(body=bytes(len(CONTENT))),
        Reply(body=CONTENT, headers=("Content-Encoding: gzip",), counted=False),
        Reply(body=b"\x1f\x8b" + CONTENT[:1000], headers=("Content-Encoding: gzip",)),
        partial("0-299999/300000", CONTENT),
        partial("", CONTENT),
        Reply("204 No Content"),
        Reply("304 Not Modified"),
        Reply("302 Found", ("Location: ftp://127.0.0.1/d/file",)),
        Reply("302 Found", ("Location: file:///etc/passwd",)),
        Reply("302 Found"),
        Reply("999 What", body=CONTENT),
        Reply("200 OK", tuple(f"X-{number}: {'y' * 90}" for number in range(500)), b"x" * 99),
    ],
)
def test_a_wrong_file_is_not_taken(down: Downstream, file: File, reply: Reply) -> None:
    with scripted(lambda _: reply) as server:
        outcome = down.fetch([file], server.url)
    assert outcome.mismatched == [file]
    assert outcome.arrived == []
    assert not [path for path in down.root.rglob("*") if path.name == "file"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 Unauthorized", UpstreamRefusedError),
        ("407 Proxy Authentication Required", UpstreamRefusedError),
        ("500 Oh", ConnectionBrokenError),
        ("502 Bad Gateway", ConnectionBrokenError),
        ("503 Busy", UpstreamFullError),
        ("429 Enough", UpstreamFullError),
    ],
)
def test_servers_that_refuse_everything(
    upstream: Path, down: Downstream, status: str, kind: type[TransferError]
) -> None:
    files = put_many(upstream, 20, 10)
    options = replace(TEST_OPTIONS, patience=0.1)
    page = Reply(status, ("Content-Type: text/html", "Retry-After: 1"), PAGE)
    with scripted(lambda _: page) as server, pytest.raises(kind) as caught:
        down.fetch(files, server.url, options)
    assert status[:3] in caught.value.message
    assert caught.value.hint


def test_a_server_fails_at_one_file(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 20, 10)

    def reply(question: Request) -> Reply:
        if question.path == "/f/7":
            return Reply("500 Oh")
        return Reply(body=(upstream / question.path[1:]).read_bytes())

    with scripted(reply) as server:
        outcome = down.fetch(files, server.url)
    (refused,) = outcome.refused
    assert refused.file.path == b"f/7"
    assert "HTTP 500" in refused.reason
    assert len(outcome.arrived) == 19


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=CONTENT),
        Reply(body=CONTENT, counted=False),
        Reply("416 Range Not Satisfiable", ("Content-Range: bytes */7",)),
        partial("0-299999/300000", CONTENT),
        partial("999-299999/300000", CONTENT[999:]),
        partial("1000-2000/300000", CONTENT[1000:]),
        partial("", CONTENT[1000:]),
        partial("1000-299999/300000", CONTENT[1000:] + b"more", counted=False),
        partial("1000-299999/300000", spoil(CONTENT, 200_000)[1000:]),
        Reply(
            "206 Partial Content",
            ("Content-Type: multipart/byteranges; boundary=x",),
            b"--x\r\nContent-Range: bytes 1000-299999/300000\r\n\r\n" + CONTENT[1000:],
        ),
    ],
)
def test_a_wrong_range_costs_a_whole_request(down: Downstream, file: File, reply: Reply) -> None:
    with Staging(down.root) as staging:  # as an interrupted run leaves it
        place = staging.root / "incoming" / "7" / "d" / "file"
        place.parent.mkdir(parents=True)
        place.write_bytes(CONTENT[:1000])
    with scripted(lambda question: reply if question.first else Reply(body=CONTENT)) as server:
        assert down.fetch([file], server.url).complete
        assert server.questions[0].first == 1000
        assert len(server.questions) <= 2


def test_redirections_are_followed_but_not_for_ever(
    upstream: Path, down: Downstream, file: File
) -> None:
    def circle(question: Request) -> Reply:
        return Reply("302 Found", (f"Location: {question.path[:-1]}{len(question.path) % 2}",))

    def onward(question: Request) -> Reply:
        return Reply("302 Found", (f"Location: {question.path}x",))

    for endless in (circle, onward):
        with scripted(endless) as server:
            assert down.fetch([file], server.url).mismatched == [file]
            assert len(server.questions) <= 7
    with nginx(upstream) as good:

        def reply(question: Request) -> Reply:
            return Reply("307 Elsewhere", (f"Location: {good.url}{question.path}",), PAGE)

        with scripted(reply) as server:
            assert down.fetch([file], server.url).complete


def test_no_redirection_leads_out_of_tls(
    upstream: Path, down: Downstream, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with nginx(upstream) as plain:
        location = (f"Location: {plain.url}/d/file",)
        with scripted(lambda _: Reply("301 Moved", location), context) as server:
            assert down.fetch([file], server.url).mismatched == [file]
        assert plain.requests == []


def test_a_redirection_takes_no_login_along(
    down: Downstream, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc, headers = tmp_path / "netrc", tmp_path / "headers"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    headers.write_text("X-Token: secret\n")
    headers.chmod(0o600)
    options = replace(TEST_OPTIONS, http_headers=headers)
    logins = {"x-token", "authorization"}
    with scripted(lambda _: Reply(body=CONTENT)) as other:
        location = (f"Location: {other.url}/d/file",)
        with scripted(lambda _: Reply("302 Found", location)) as server:
            assert down.fetch([file], server.url, options).complete
        (first,), (second,) = server.questions, other.questions
        assert logins <= first.headers.keys()
        assert not logins & second.headers.keys()
        shutil.rmtree(down.root)
        with Staging(down.root) as staging:
            url = ContentUrl.parse(other.url)
            fetch([file], [url], down.dest, staging, options, Recorder())
        assert not logins & other.questions[1].headers.keys()


def test_a_mirror_with_wrong_content_is_left_out(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 400, 100)
    lying = copy_tree(upstream)
    for path in (lying / "f").iterdir():
        path.write_bytes(spoil(path.read_bytes(), 50))
    options = replace(TEST_OPTIONS, batch_files=100)
    with nginx(lying) as bad, nginx(upstream) as good:
        assert down.fetch(files, [bad.url, good.url], options).complete
        assert len(bad.requests) <= 250, "it was noticed early"
        assert len(good.requests) == 400
    assert any("other content" in text and bad.url in text for text in down.listener.retries)


def test_one_wrong_byte_of_one_file(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 5, 200_000)
    lying = copy_tree(upstream)
    (lying / "f/3").write_bytes(spoil((lying / "f/3").read_bytes(), 123_456))
    with nginx(lying) as bad:
        outcome = down.fetch(files, bad.url)
    assert [file.path for file in outcome.mismatched] == [b"f/3"], "the only mirror is used on"
    assert len(outcome.arrived) == 4


def test_the_current_files_of_a_mirror_that_lags_are_used(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 100, 100)
    stale = copy_tree(upstream)
    for number in range(0, 100, 4):
        (stale / f"f/{number}").unlink()
        (stale / f"f/{number + 1}").write_bytes(b"an older one")
    with nginx(stale) as old, nginx(upstream) as good:
        assert down.fetch(files, [old.url, good.url]).complete
        assert len(good.requests) == 50
    assert down.listener.retries == []


def test_connections_that_break_again_and_again(upstream: Path, down: Downstream) -> None:
    file = write_file(upstream, b"large", os.urandom(1_000_000))
    with nginx(upstream) as server, weak(server.url, Weakness(most=90_000)) as line:
        assert down.fetch([file], f"http://{line}").complete
        firsts = [line.split('"')[1] for line in server.requests]
    assert len(set(firsts)) > 10, "each asked for the rest"


def test_a_file_that_changes_while_its_connection_breaks(down: Downstream, file: File) -> None:
    """Its parts do not fit each other, and the mirror is not blamed."""
    cut = Reply(headers=("Content-Length: 300000",), body=CONTENT[:1000], counted=False)

    def reply(question: Request) -> Reply:
        if len(server.questions) == 1:
            return cut
        if question.first:
            return partial("1000-299999/300000", spoil(CONTENT, 2000)[1000:])
        return Reply(body=CONTENT)

    with scripted(reply) as server:
        other = server.url.replace("127.0.0.1", "localhost")
        assert down.fetch([file], [server.url, other]).complete
        assert [question.first for question in server.questions] == [0, 1000, 0]
    assert down.listener.retries == []


def test_a_silent_server(down: Downstream, file: File) -> None:
    options = replace(TEST_OPTIONS, timeout=1, retries=100)
    with silent() as line, pytest.raises(UnansweredError, match="does not answer"):
        down.fetch([file], f"http://{line}", options)
    assert down.listener.retries == [], "it is tried twice"
    shutil.rmtree(down.root)
    options = replace(TEST_OPTIONS, deadline=Deadline.after(1))
    with silent() as line:
        assert down.fetch([file], f"http://{line}", options).late == [file]


def test_a_server_that_stops_in_the_middle(upstream: Path, down: Downstream) -> None:
    file = write_file(upstream, b"large", os.urandom(1_000_000))
    options = replace(TEST_OPTIONS, timeout=1, retries=0)
    with nginx(upstream) as server:
        with (
            weak(server.url, Weakness(most=500_000, stalls=True)) as line,
            pytest.raises(UpstreamSilentError),
        ):
            down.fetch([file], f"http://{line}", options)
        assert down.fetch([file], server.url).complete
        first = int(server.requests[-1].split('"')[1].removeprefix("bytes=").partition("-")[0])
    assert first > 300_000


def test_a_server_that_does_not_speak_http(down: Downstream, file: File) -> None:
    def talk(client: socket.socket) -> None:
        with client:
            client.recv(1000)
            client.sendall(b"@RSYNCD: 31.0\n" + bytes(1000))

    with listening(talk) as port, pytest.raises(TransferError):
        down.fetch([file], f"http://127.0.0.1:{port}")


def test_retry_after_is_obeyed(down: Downstream, file: File) -> None:
    refusals = [Reply("503 Busy", ("Retry-After: 1",))]
    with scripted(lambda _: refusals.pop() if refusals else Reply(body=CONTENT)) as server:
        assert down.fetch([file], server.url).complete
        assert len(server.questions) == 2
    assert len(down.listener.waits) == 1
