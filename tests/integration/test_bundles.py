"""Small files come from `serve` in bundles; whatever else is sent in one is never published."""

import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import cast

import httpx
import pytest

from huai_schema.entries import File
from huai_server.http.settings import QUEUE
from tests.support.answering import QuietHandler, answering
from tests.support.committing import run_server
from tests.support.counting_proxy import counting
from tests.support.processes import open_paths
from tests.support.transfers import Downstream as Receiver
from tests.support.transfers import described, put_many
from tests.support.upstream import SECONDS, T0, Downstream, Site, Upstream, assert_equal, site

LARGE = os.urandom((64 << 10) + 1)
FILES = 300
TYPE = "application/x-huai-paths"


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    return filled(place.upstream(serve_content=True))


def filled(up: Upstream) -> Upstream:
    up.many(b"many", FILES, 200)
    up.many(b"many/deep/er", 20, 20)
    up.put(b"empty")
    up.put(b"limit", LARGE[:-1])
    up.put(b"large", LARGE)
    up.put(b"odd/\xff\n%2f", b"odd name", mode=0o755)
    up.put(b"closed", b"closed", mode=0o600)
    os.link(up.at(b"empty"), up.at(b"linked"))
    up.at(b"symlink").symlink_to("empty")
    return up


def content_url(url: str, up: Upstream) -> str:
    return f"{url}/content/{up.name}/"


def rsync_finds(up: Upstream, down: Downstream) -> str:
    """The differences by rsync's own comparison of all content."""
    command = ["rsync", "-anciH", "--delete", "--exclude=/.~tmp~", f"{up.tree}/", f"{down.dest}/"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("digest", ["now", "off"])
def test_a_first_copy_takes_few_requests(place: Site, digest: str) -> None:
    up = filled(place.upstream(serve_content=True, digest=digest))
    up.commit()
    with counting(place.url) as counted:
        down = place.downstream(up, content_urls=[content_url(counted.url, up)])
        down.synced()
    assert_equal(up, down)
    assert rsync_finds(up, down) == ""
    posts = [line for line in counted.requests if line.startswith(b"POST ")]
    gets = [line for line in counted.requests if line.startswith(b"GET ")]
    assert 1 <= len(posts) <= 8
    assert [line.split()[1].rpartition(b"/")[2] for line in gets] == [b"large"]


def test_changed_files_come_in_bundles_too(up: Upstream, place: Site) -> None:
    with counting(place.url) as counted:
        down = place.synced_downstream(up, content_urls=[content_url(counted.url, up)])
        up.many(b"many", FILES, 100)
        up.commit()
        counted.requests.clear()
        down.synced()
    assert_equal(up, down)
    assert not [line for line in counted.requests if line.startswith(b"GET ")]


def test_what_changed_under_the_commit_is_left_out(up: Upstream, place: Site) -> None:
    up.commit()
    up.put(b"many/7", b"other content", mtime=T0 + 1)
    up.at(b"many/8").unlink()
    up.at(b"many/9").unlink()
    up.at(b"many/9").symlink_to("10")
    up.at(b"many/deep").rename(up.at(b"elsewhere"))
    up.at(b"many/deep").symlink_to("../elsewhere")
    down = place.downstream(up, content_urls=[content_url(place.url, up)])
    ended = down.sync("--json")
    assert ended.code in (23, 24, 48)
    for path in (b"many/7", b"many/8", b"many/9", b"many/deep/er/0"):
        assert not os.path.lexists(down.dest / os.fsdecode(path)), path
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_a_server_without_bundles_is_asked_once(place: Site) -> None:
    up = filled(place.upstream(serve_content=True))
    up.commit()
    requested_paths: list[str] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            requested_paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(405)

        def do_GET(self) -> None:
            response = client.get(place.url + self.path)
            self.send_response(response.status_code)
            self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            self.wfile.write(response.content)

    with httpx.Client() as client, answering(Handler) as url:
        down = place.downstream(up, content_urls=[content_url(url, up)], streams=1)
        down.synced()
    assert_equal(up, down)
    assert len(requested_paths) == 1


def test_a_private_module_needs_its_token(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        up = filled(place.upstream(serve_content=True, access="private"))
        up.commit()
        created = run_server(up.root, "token", "new", up.name)
        token = next(word for word in created.stdout.split() if word.startswith("huai_"))
        url = content_url(place.url, up)

        def status(**headers: str) -> int:
            return httpx.post(url, content=b"empty\0", headers=headers).status_code

        assert status() == 401
        assert status(Authorization=f"Bearer {token}") == 200


def test_requests_that_are_refused(up: Upstream, place: Site) -> None:
    up.commit()
    url = content_url(place.url, up)

    def post(content: bytes, to: str = url, **headers: str) -> httpx.Response:
        return httpx.post(to, content=content, headers=headers, timeout=SECONDS)

    assert post(b"").status_code == 400
    assert post(b"empty").status_code == 400
    assert post(b"a\0" * 50_001).status_code == 413
    assert post(bytes(5 << 20)).status_code == 413
    assert post(b"x", **{"Content-Encoding": "gzip"}).status_code == 400
    assert post(b"empty\0", url + "many/").status_code == 404
    assert post(b"empty\0", url.rstrip("/")).status_code in (404, 405)
    assert post(b"empty\0", f"{place.url}/content/none/").status_code in (401, 404)
    odd = b"..\0/etc/passwd\0many\0a//b\0.\0symlink\0symlink/x\0\0.~tmp~/x\0" + b"n" * 5000 + b"\0"
    assert post(odd).content == b"M" * 10
    assert post(b"large\0").content == b"L"
    up.change(serve_content="large")
    assert post(b"empty\0").status_code == 404


def test_a_client_that_leaves_stops_the_reading(up: Upstream, place: Site) -> None:
    up.commit()
    body = b"limit\0" * 4000
    with httpx.stream("POST", content_url(place.url, up), content=body, timeout=SECONDS) as left:
        assert left.status_code == 200
    until = time.monotonic() + SECONDS
    while any(path.endswith(f"/{up.name}/limit") for path in open_paths(place.server.pid)):
        assert time.monotonic() < until
        time.sleep(0.02)
    answer = httpx.post(content_url(place.url, up), content=b"empty\0")
    assert answer.content[:5] == b"F\0\0\0\0"


def test_an_address_gets_eight_bundles_at_a_time(up: Upstream, place: Site) -> None:
    """It may wait for as many as half of the queue."""
    up.commit()
    body = b"limit\0" * 4000
    head = f"POST /content/{up.name}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    begun, waiting, refused = 8, QUEUE // 2, 4
    with ExitStack() as stack, DefaultSelector() as answers:
        for _ in range(begun + waiting + refused):
            source, target = ("127.0.0.2", 0), ("127.0.0.1", httpx.URL(place.url).port)
            one = stack.enter_context(socket.create_connection(target, SECONDS, source))
            one.sendall(head.encode() + body)
            answers.register(one, EVENT_READ)
        statuses = list[bytes]()
        while len(statuses) < begun + refused:
            (key, _), *_ = answers.select(SECONDS)
            answers.unregister(one := cast("socket.socket", key.fileobj))
            statuses.append(one.recv(12)[-3:])
    assert Counter(statuses) == {b"200": begun, b"503": refused}


Reply = Callable[[list[File]], Iterator[bytes]]


def record(file: File, content: bytes, mtime: int | None = None) -> bytes:
    time = file.mtime if mtime is None else mtime
    return b"F" + len(content).to_bytes(4, "big") + time.to_bytes(8, "big", signed=True) + content


def shorter(files: list[File]) -> Iterator[bytes]:
    yield from (record(file, b"x" * (file.size - 1)) for file in files)


def other_bytes(files: list[File]) -> Iterator[bytes]:
    yield from (record(file, b"x" * file.size) for file in files)


def more_files(files: list[File]) -> Iterator[bytes]:
    yield from (b"M" for _ in files)
    yield from other_bytes(files)


def endless_file(_: list[File]) -> Iterator[bytes]:
    yield b"F" + (1 << 31).to_bytes(4, "big") + bytes(8)
    while True:
        yield bytes(1 << 16)


def endless_records(_: list[File]) -> Iterator[bytes]:
    while True:
        yield b"C" * (1 << 16)


def page(_: list[File]) -> Iterator[bytes]:
    yield b"<html>Please log in</html>"


def nothing(_: list[File]) -> Iterator[bytes]:
    yield b""


def cut(files: list[File]) -> Iterator[bytes]:
    yield record(files[0], b"x" * files[0].size)[:20]


@pytest.mark.parametrize(
    "reply", [shorter, other_bytes, more_files, endless_file, endless_records, page, nothing, cut]
)
def test_a_hostile_server_publishes_nothing(upstream: Path, down: Receiver, reply: Reply) -> None:
    files = put_many(upstream, 20, 1000)
    requested_paths: list[str] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            requested_paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            for data in reply(files):
                self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(404)

    with answering(Handler) as url:
        outcome = down.fetch(files, f"{url}/content/m/")
    assert not outcome.arrived
    assert {*outcome.missing, *outcome.mismatched} == {*files}
    assert 1 <= len(requested_paths) <= 3
    assert [*down.dest.iterdir()] == [down.dest / ".~tmp~"]


def test_a_file_without_a_digest_needs_its_time(upstream: Path, down: Receiver) -> None:
    files = [described(upstream, file.path, digest=False) for file in put_many(upstream, 4, 100)]

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            for number, file in enumerate(files):
                content = (upstream / os.fsdecode(file.path)).read_bytes()
                self.wfile.write(record(file, content, file.mtime + number % 2))

        def do_GET(self) -> None:
            self.send_error(404)

    with answering(Handler) as url:
        outcome = down.fetch(files, f"{url}/content/m/")
    assert [*outcome.arrived] == files[::2]
    assert outcome.mismatched == files[1::2]
