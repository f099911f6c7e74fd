"""Content that `huai-server serve` serves: its files, and its responses to a hostile client."""

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote_from_bytes

import httpx
import pytest

from huai_native._native import Blake3
from tests.support.committing import NAME, SECONDS, run_server
from tests.support.processes import open_paths
from tests.support.serving import Serving, serving

BIG = bytes(range(256)) * 5000 + b"end"
"""Several blocks, and not a whole number of them."""
ODD = (b"\xff\xfe", b"a%2fb", b"line\nfeed", b"sp ace+?#", b"back\\slash", b"\xc3\xa9", b"n" * 255)
TIME = 1_600_000_000


class Mirror:
    """A tree, its state, and the server of both."""

    server: Serving

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.root = folder / "state"
        (self.tree / "d/deep").mkdir(parents=True)
        self.write("d/deep/big", BIG)
        self.write("small", b"small")
        self.write("empty", b"")
        for name in ODD:
            self.write(os.fsdecode(b"d/" + name), name)
        self.write("left.tmp", b"excluded")
        self.write("beat", b"0")
        (self.tree / "link").symlink_to("small")
        (self.tree / "outside").symlink_to("/etc")

    def write(self, name: str, content: bytes, time: int = TIME) -> Path:
        place = self.tree / name
        place.write_bytes(content)
        os.utime(place, (time, time))
        return place

    def add(self, *options: str) -> None:
        options = (*options, "--exclude", "*.tmp")
        assert run_server(self.root, "add", NAME, str(self.tree), *options).returncode == 0
        path = self.root / "server.toml"
        path.write_text(path.read_text() + 'volatile = ["/beat"]\n')
        self.commit()

    def commit(self) -> None:
        assert run_server(self.root, "commit", NAME).returncode in (0, 41)

    def get(self, path: bytes | str, method: str = "GET", **headers: str) -> httpx.Response:
        """`path` is of the module; underscores in the names of headers are hyphens."""
        raw = path if isinstance(path, str) else quote_from_bytes(path)
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.server.url}/content/{NAME}/{raw}"
        return httpx.request(method, url, headers=header_fields, timeout=SECONDS)

    def exchange(self, request: bytes) -> bytes:
        """All that comes back on one connection."""
        with socket.create_connection(("127.0.0.1", self.server.port), SECONDS) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    def ask(self, target: bytes, *headers: bytes) -> int:
        """The status for a request target that no library would send."""
        lines = (b"GET " + target + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers)
        return int(self.exchange(b"\r\n".join((*lines, b"", b""))).split(b" ", 2)[1])


@contextlib.contextmanager
def serving_content(folder: Path) -> Iterator[Mirror]:
    mirror = Mirror(folder)
    mirror.add("--serve-content")
    with serving(mirror.root) as mirror.server:
        yield mirror


@pytest.fixture
def mirror(short_path: Path) -> Iterator[Mirror]:
    with serving_content(short_path) as mirror:
        yield mirror


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """One that no test changes."""
    with serving_content(tmp_path_factory.mktemp("steady")) as steady:
        yield steady


def digest(content: bytes) -> str:
    return f'"{Blake3(content).digest().hex()}"'


def test_every_file_of_the_commit_is_there_byte_for_byte(steady: Mirror) -> None:
    files = {b"d/deep/big": BIG, b"small": b"small", b"empty": b""}
    files |= {b"d/" + name: name for name in ODD}
    for path, content in files.items():
        answer = steady.get(path)
        assert (answer.status_code, answer.content) == (200, content), path
        assert answer.headers["etag"] == digest(content)
        assert answer.headers["last-modified"] == formatdate(TIME, usegmt=True)
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["accept-ranges"] == "bytes"
        head = steady.get(path, "HEAD")
        assert (head.status_code, head.content) == (200, b"")
        del head.headers["date"], answer.headers["date"]
        assert head.headers == answer.headers


def test_it_is_off_by_default(short_path: Path) -> None:
    mirror = Mirror(short_path)
    mirror.add()
    with serving(mirror.root) as mirror.server:
        answer = mirror.get("small")
        assert answer.status_code == 404
        assert set(answer.json()) == {"error", "hint"}
        path = mirror.root / "server.toml"
        path.write_text(path.read_text() + "serve_content = true\n")
        assert mirror.get("small").content == b"small"


def test_only_regular_files_of_the_newest_commit_are_there(mirror: Mirror) -> None:
    mirror.write("later", b"not committed yet")
    (mirror.tree / ".~tmp~").mkdir()
    mirror.write(".~tmp~/small", b"small")
    absent = [
        *("later", "left.tmp", ".~tmp~/small", "link", "outside/passwd", "d", "d/", "", "no/such"),
        *("small/", "small/x", "d//deep/big"),
    ]
    for path in absent:
        answer = mirror.get(path)
        assert answer.status_code == 404, path
        assert set(answer.json()) == {"error", "hint"}
    mirror.commit()
    assert mirror.get("later").content == b"not committed yet"
    assert mirror.get("left.tmp").status_code == 404


def test_a_path_that_leads_elsewhere_is_no_path(steady: Mirror) -> None:
    for path in [
        *(b"..", b"../tree/small", b"%2e%2e/tree/small", b"..%2ftree%2fsmall", b"d/%2e%2e/small"),
        *(b"d%2fdeep%2fbig", b"%2fsmall", b"/small", b"//etc/passwd", b"small%00", b"%00", b"."),
        *(b"./small", b"d/../small", b"d/./deep/big", b"../state/server.toml"),
        *(b"%", b"%zz", b"small%", b"%C0%AFsmall", b"a" * 300, b"a/" * 3000, b"%61" * 5000),
    ]:
        assert steady.ask(b"/content/m/" + path) == 404, path


def test_other_spellings_of_the_address(steady: Mirror) -> None:
    assert steady.ask(b"/content/m/%73mall") == 200
    assert steady.ask(b"/content/m/small?a=b#c") == 200
    assert steady.ask(b"http://elsewhere/content/m/small") == 200
    assert steady.ask(b"/%63ontent/m/small") == 200
    for target in (b"/content", b"/content/", b"/content/m", b"/content/n/small", b"//content/m/x"):
        assert steady.ask(target) in (307, 404), target
    for target in (
        b"/content%2fm/small",
        b"/content/m%2fsmall",
        b"/content/%ff/x",
        b"/content/../",
    ):
        assert steady.ask(target) == 404, target
    assert steady.ask(b"/content/m/\xff") in (400, 404)
    answer = steady.get("small", "POST")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_what_is_not_as_committed_is_not_handed_out(mirror: Mirror) -> None:
    mirror.write("small", b"other")
    assert mirror.get("small").status_code == 200  # size and time say that it is the same
    mirror.write("small", b"other", TIME + 1)
    answer = mirror.get("small")
    assert (answer.status_code, set(answer.json())) == (410, {"error", "hint"})
    mirror.write("small", b"longer", TIME)
    assert mirror.get("small").status_code == 410
    (mirror.tree / "small").unlink()
    assert mirror.get("small", "HEAD").status_code == 410
    mirror.write("small", b"new")
    mirror.commit()
    assert mirror.get("small").content == b"new"


def test_nothing_that_took_the_place_of_a_file_is_followed(mirror: Mirror, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"small")
    os.utime(secret, (TIME, TIME))
    small = mirror.tree / "small"

    def fifo() -> None:
        os.mkfifo(small)

    def symlink() -> None:
        small.symlink_to(secret)

    for make in (symlink, fifo, small.mkdir):
        if small.exists():
            small.unlink()
        make()
        assert mirror.get("small").status_code == 410
    (mirror.tree / "d").rename(mirror.tree / "e")
    (mirror.tree / "d").symlink_to("e")
    assert mirror.get("d/deep/big").status_code == 410


def test_a_volatile_file_is_handed_out_as_it_is(mirror: Mirror) -> None:
    before = mirror.get("beat").headers["etag"]
    mirror.write("beat", b"12", TIME + 5)
    answer = mirror.get("beat")
    assert (answer.status_code, answer.content) == (200, b"12")
    assert answer.headers["etag"] != before
    assert answer.headers["last-modified"] == formatdate(TIME + 5, usegmt=True)


def test_one_range(steady: Mirror) -> None:
    size = len(BIG)
    for byte_range, start, end in [
        ("0-0", 0, 1),
        ("5-", 5, size),
        ("-7", size - 7, size),
        ("262100-262200", 262100, 262201),
        (f"0-{size + 5}", 0, size),
        (f"-{size + 5}", 0, size),
        ("3-4, 5-6 ,,4-9", 3, 10),
        (f"0-3,{size}-,-0", 0, 4),
    ]:
        answer = steady.get("d/deep/big", range=f"bytes={byte_range}")
        assert (answer.status_code, answer.content) == (206, BIG[start:end]), byte_range
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        assert answer.headers["content-length"] == str(end - start)


def test_several_ranges(steady: Mirror) -> None:
    size = len(BIG)
    answer = steady.get("d/deep/big", range="bytes=1000-1999, 0-99, 300000-800000, -3")
    assert answer.status_code == 206
    kind, _, boundary = answer.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/byteranges"
    assert answer.headers["content-length"] == str(len(answer.content))
    first, *parts, last = (b"\r\n" + answer.content).split(b"\r\n--" + boundary.encode())
    assert (first, last) == (b"", b"--")
    ranges = []
    for part in parts:
        head, _, content = part.partition(b"\r\n\r\n")
        match = re.search(rb"Content-Range: bytes (\d+)-(\d+)/(\d+)", head)
        assert match
        begin, end, total = map(int, match.groups())
        assert (content, total) == (BIG[begin : end + 1], size)
        ranges.append((begin, end))
    assert ranges == [(0, 99), (1000, 1999), (300000, 800000), (size - 3, size - 1)]


def test_ranges_that_are_none(steady: Mirror) -> None:
    for path, byte_range in [
        *(("small", "5-"), ("small", "5-9"), ("small", "-0"), ("small", "7-,8-"), ("empty", "0-")),
        *(("small", ""), ("small", "5-4"), ("small", "a-b"), ("small", "9" * 900 + "-")),
    ]:
        answer = steady.get(path, range=f"bytes={byte_range}")
        assert (answer.status_code, set(answer.json())) == (416, {"error", "hint"}), byte_range
        assert answer.headers["content-range"] == f"bytes */{0 if path == 'empty' else 5}"
    assert steady.get("small", range="lines=1-2").content == b"small"


def test_ten_thousand_ranges_cost_no_more_than_the_file(steady: Mirror) -> None:
    for many in (",".join(["0-"] * 10_000), ",".join(f"{n}-{n}" for n in range(0, 20_000, 2))):
        answer = steady.get("d/deep/big", range=f"bytes={many[:60_000].rpartition(',')[0]}")
        assert (answer.status_code, answer.content) == (200, BIG)
    overlapping = ",".join(["0-"] * 100)
    answer = steady.get("d/deep/big", range=f"bytes={overlapping}")
    assert (answer.status_code, answer.content) == (206, BIG)
    scattered = ",".join(f"{n}-{n}" for n in range(0, 200, 2))
    answer = steady.get("d/deep/big", range=f"bytes={scattered}")
    assert answer.status_code == 206
    assert len(answer.content) < 100 * 200


def test_a_range_on_a_condition(steady: Mirror) -> None:
    tag, date = digest(b"small"), formatdate(TIME, usegmt=True)
    for status, headers in [
        (206, {"if_range": tag}),
        (206, {"if_range": date}),
        (200, {"if_range": formatdate(TIME + 1, usegmt=True)}),
        (200, {"if_range": f"W/{tag}"}),
        (200, {"if_range": '"x"'}),
        (304, {"if_none_match": tag}),
    ]:
        answer = steady.get("small", range="bytes=0-1", **headers)
        assert answer.status_code == status, headers
        assert (answer.headers["etag"], answer.headers["last-modified"]) == (tag, date)


def test_without_digests_the_file_itself_is_the_tag(short_path: Path) -> None:
    mirror = Mirror(short_path)
    mirror.add("--serve-content", "--digest", "off")
    with serving(mirror.root) as mirror.server:
        tag = mirror.get("small").headers["etag"]
        assert re.fullmatch(r'"5-[0-9a-f]+-[0-9a-f]+"', tag)
        assert mirror.get("small", if_none_match=tag).status_code == 304


def test_a_file_that_changes_under_its_reader_never_arrives_whole(mirror: Mirror) -> None:
    large = mirror.write("large", os.urandom(64 << 20))
    mirror.commit()
    request = b"GET /content/m/large HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", mirror.server.port), SECONDS) as connection:
        connection.sendall(request)
        got = len(connection.recv(1000))
        with large.open("r+b") as file:
            file.write(b"changed")
        while chunk := connection.recv(1 << 20):
            got += len(chunk)
    assert got < 64 << 20
    assert "m: large: changed while it was being sent" in mirror.server.log.read_text()
    assert mirror.get("large").status_code == 410


def test_who_leaves_early_stops_the_reading(mirror: Mirror) -> None:
    mirror.write("large", bytes(256 << 20))
    mirror.commit()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", mirror.server.port), SECONDS) as connection:
            connection.sendall(b"GET /content/m/large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
    assert mirror.get("small").content == b"small"
    server = mirror.server.process.pid
    mirror.server.wait_until(
        lambda: not any(path.endswith("/tree/large") for path in open_paths(server))
    )


def test_who_reads_nothing_leaves_room_for_others(short_path: Path) -> None:
    mirror = Mirror(short_path)
    mirror.write("large", bytes(64 << 20))
    mirror.add("--serve-content")
    path = mirror.root / "server.toml"
    # Four answers with content at a time, of which an address gets two; and two seconds of pause.
    limits = "[listen]\nmax_connections = 8\nrequest_timeout = 2\n"
    path.write_text(limits + path.read_text())
    with serving(mirror.root) as mirror.server, contextlib.ExitStack() as idle:
        for _ in range(2):
            connection = socket.create_connection(("127.0.0.1", mirror.server.port), SECONDS)
            idle.enter_context(connection)
            connection.sendall(b"GET /content/m/large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert mirror.server.get("/healthz")["status"] == "ok"
        elsewhere = {"X-Forwarded-For": "192.0.2.1"}
        assert mirror.get("small", **elsewhere).content == b"small"
        answer = mirror.get("small")
        if answer.status_code == 503:  # those that read nothing are still there
            assert int(answer.headers["retry-after"]) > 0
        mirror.server.wait_until(lambda: mirror.get("small").content == b"small")


def test_what_may_not_be_read_is_said_so(mirror: Mirror) -> None:
    (mirror.tree / "small").chmod(0)
    answer = mirror.get("small")
    assert answer.status_code == (200 if os.geteuid() == 0 else 403)


def test_metadata_that_are_damaged_are_an_error_in_the_log(mirror: Mirror) -> None:
    objects = mirror.root / "modules/m/repository.git/objects"
    objects.rename(objects.with_name("gone"))
    answer = mirror.get("small")
    assert (answer.status_code, set(answer.json())) == (500, {"error", "hint"})
    objects.with_name("gone").rename(objects)
    assert mirror.get("small").content == b"small"
    mirror.tree.rename(mirror.tree.with_name("moved"))
    answer = mirror.get("small")
    assert (answer.status_code, set(answer.json())) == (500, {"error", "hint"})
    assert str(mirror.tree) not in answer.text
    assert "m: small: No such file" in mirror.server.log.read_text()


def test_a_request_with_a_body_is_refused(steady: Mirror) -> None:
    assert steady.ask(b"/content/m/small", b"Content-Length: 0") == 200
    head = b"GET /content/m/small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    response = steady.exchange(head + b"Content-Length: 3\r\n\r\nabc")
    assert response.startswith(b"HTTP/1.1 413")
    one = b"GET /content/m/small HTTP/1.1\r\nHost: x\r\n\r\n"
    last = one.replace(b"Host", b"Connection: close\r\nHost")
    assert steady.exchange(one * 50 + last).count(b"\r\n\r\nsmall") == 51
    assert steady.exchange(one * 1000).count(b"\r\n\r\nsmall") < 1000


def test_the_description_names_it(steady: Mirror) -> None:
    paths = steady.server.get("/openapi.json")["paths"]
    operation = paths["/content/{name}/{path}"]["get"]
    assert [each["name"] for each in operation["parameters"]] == ["name", "path", "range"]
    assert {"200", "206", "304", "404", "410", "416"} <= set(operation["responses"])
