"""Static files that break off, lie or lead elsewhere: an error of ours, no traces."""

import base64
import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from huai_client.metadata.failover import UntrustedError
from huai_client.metadata.git.local import LocalRepository
from huai_client.metadata.http import (
    MetadataUrl,
    Request,
    UpstreamError,
    UpstreamTimeoutError,
    send,
)
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import DamagedRepositoryError, Repository
from huai_client.metadata.static_fetch import StaticFetch
from huai_client.run.options import Deadline, TimeUpError
from huai_schema.errors import FormatError, HuaiError, MissingObjectError
from tests.support.packs import PackObjects, appended, full_record, on_name, pack
from tests.support.scripted_upstream import HEAD, SECONDS, Reply, Script, scripted
from tests.support.weak_network import silent

TEXT = b"a line of text\n" * 20


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script


class Mirror:
    """A commit and the pack of all that is in it."""

    def __init__(self) -> None:
        self.objects = PackObjects()
        blob = self.objects.blob(TEXT)
        self.tree = self.objects.tree(m=blob, t1=self.objects.tree(m=self.objects.blob(b"x")))
        self.head = self.objects.commit(self.tree)
        extra = on_name(blob, appended(TEXT, b"y"))
        self.pack = pack([*self.records(), extra])

    def records(self, *, without: bytes = b"") -> list[bytes]:
        """All objects, but one."""
        items = self.objects.objects.items()
        return [full_record(found.data, found.kind) for oid, found in items if oid != without]


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


class Downstream:
    """Fetches into a repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Repository(path)

    def fetch(self, url: str, *, timeout: float = 30) -> str:
        newest = find_newest(MetadataUrl(url))
        assert newest.static is not None
        local = LocalRepository(self.path, self.store, ())
        StaticFetch(
            newest, newest.static, local, timeout=timeout, on_step=lambda _: None
        ).complete()
        return newest.commit

    def traces(self) -> list[str]:
        """Return the files that a fetch left."""
        return [path.name for path in (self.path / "objects" / "pack").iterdir()]


@pytest.fixture
def down(tmp_path: Path) -> Downstream:
    return Downstream(tmp_path / "down")


def test_the_script_can_be_followed(script: Script, mirror: Mirror, down: Downstream) -> None:
    script.serve(mirror.head, mirror.pack)
    assert down.fetch(f"{script.url}/m.git") == mirror.head
    assert down.store.has(mirror.head)
    assert len(down.traces()) == 2


def test_a_pack_that_breaks_off_anywhere(script: Script, mirror: Mirror, down: Downstream) -> None:
    script.serve(mirror.head, mirror.pack)
    for end in range(0, len(mirror.pack), 5):
        script.replies[script.pack] = Reply(mirror.pack[:end], length=len(mirror.pack))
        with pytest.raises(UpstreamError, match="ended early"):
            down.fetch(f"{script.url}/m.git")
        script.replies[script.pack] = Reply(mirror.pack[:end])
        with pytest.raises(FormatError, match="not the file with the digest in its name"):
            down.fetch(f"{script.url}/m.git")
        assert not down.traces()


def test_a_pack_with_a_wrong_byte_anywhere(
    script: Script, mirror: Mirror, down: Downstream
) -> None:
    """Under its own digest, so that git's format alone can tell."""
    for at in range(0, len(mirror.pack), 3):
        script.serve(
            mirror.head, mirror.pack[:at] + bytes([mirror.pack[at] ^ 1]) + mirror.pack[at + 1 :]
        )
        with pytest.raises(FormatError):
            down.fetch(f"{script.url}/m.git")
        assert not down.traces()


def test_silence(script: Script, mirror: Mirror, down: Downstream) -> None:
    script.serve(mirror.head, mirror.pack)
    script.replies[script.pack] = Reply(mirror.pack[:50], length=len(mirror.pack), stall=True)
    with pytest.raises(UpstreamTimeoutError):
        down.fetch(f"{script.url}/m.git", timeout=0.5)
    assert not down.traces()


def test_other_answers(script: Script, mirror: Mirror, down: Downstream) -> None:
    script.serve(mirror.head, mirror.pack)
    for reply, reason in (
        (Reply(b"<html>", content_type="text/html"), "not the file"),
        (Reply(b"", status=500), "HTTP 500"),
        (Reply(b"", status=404), "which is missing"),
        (Reply(b"", status=302, location="file:///etc/passwd"), "a redirect to"),
        (Reply(b"", status=307, location="/elsewhere"), "which is missing"),
        (Reply(b"x" * 10_000), "not the file"),
    ):
        script.replies[script.pack] = reply
        with pytest.raises(HuaiError, match=reason):
            down.fetch(f"{script.url}/m.git")
        assert not down.traces()
    blob = mirror.objects.blob(TEXT).hex()
    script.serve(blob, mirror.pack)
    with pytest.raises(FormatError, match="commit is missing"):
        down.fetch(f"{script.url}/m.git")


def test_a_pack_that_lacks_something(script: Script, mirror: Mirror, tmp_path: Path) -> None:
    for number, oid in enumerate(mirror.objects.objects):
        down = Downstream(tmp_path / str(number))
        script.serve(mirror.head, pack(mirror.records(without=oid)))
        with pytest.raises(MissingObjectError):
            down.fetch(f"{script.url}/m.git")


def test_what_is_wrong_is_not_recorded(script: Script, mirror: Mirror, tmp_path: Path) -> None:
    script.serve(mirror.head, pack(mirror.records(without=mirror.objects.blob(b"x"))))
    store = Repository(tmp_path / "repository")
    for _ in range(2):
        with pytest.raises(MissingObjectError):
            store.fetch(MetadataUrl(f"{script.url}/m.git"))
        store.forget_refused()
    # Nothing of it is there.
    assert not store.has(mirror.head)
    assert [*(tmp_path / "repository" / "objects" / "pack").iterdir()] == []
    script.serve(mirror.head, mirror.pack)
    with pytest.raises((FormatError, DamagedRepositoryError), match=r"."):
        store.fetch(MetadataUrl(f"{script.url}/m.git"))  # whole, but no commit of a module


def test_a_commit_that_was_refused_is_not_fetched_again(
    script: Script, mirror: Mirror, tmp_path: Path
) -> None:
    url, path = MetadataUrl(f"{script.url}/m.git"), tmp_path / "metadata.git"
    script.serve(mirror.head, mirror.pack)

    def distrust(*_: object) -> None:
        raise UntrustedError("signed by another")

    def fetch(facts: str) -> int:
        """Fail, and return how many packs were asked for so far."""
        store = Repository(path)
        store.judge_by(facts)
        with pytest.raises(UntrustedError, match="signed by another"):
            store.fetch(url, judge=distrust)
        return script.packs_asked()

    assert [fetch("a key"), fetch("a key"), fetch("other keys")] == [1, 1, 2]
    Repository(path).forget_refused()
    assert [fetch("a key"), fetch("a key")] == [3, 3]
    other = mirror.objects.commit(mirror.tree, bytes.fromhex(mirror.head))
    script.serve(other, pack(mirror.records()))
    assert [fetch("a key"), fetch("a key")] == [4, 4]


def test_a_pack_that_was_refused_is_not_fetched_again(
    script: Script, mirror: Mirror, tmp_path: Path
) -> None:
    url, path = MetadataUrl(f"{script.url}/m.git"), tmp_path / "metadata.git"
    script.serve(mirror.head, pack(mirror.records(without=mirror.objects.blob(b"x"))))

    def fetch() -> int:
        """Fail, and return how many packs were asked for so far."""
        with pytest.raises(FormatError, match="left out"):
            Repository(path).fetch(url)
        return script.packs_asked()

    assert [fetch() for _ in range(3)] == [1, 1, 1]
    Repository(path).forget_refused()
    assert [fetch(), fetch()] == [2, 2]
    os.utime(path / "refused-heads", (0, 0))
    assert [fetch(), fetch()] == [3, 3]
    other = mirror.objects.commit(mirror.tree, bytes.fromhex(mirror.head))
    script.serve(other, pack(mirror.records(without=mirror.objects.blob(b"x"))))
    assert [fetch(), fetch()] == [4, 4]


def test_a_repository_that_moved(script: Script, mirror: Mirror, down: Downstream) -> None:
    script.serve(mirror.head, mirror.pack)
    moved = HEAD.replace("m.git", "old.git")
    script.replies[moved] = Reply(status=301, location=HEAD)
    assert down.fetch(f"{script.url}/old.git") == mirror.head
    assert [each.line for each in script.requests] == [
        f"GET {moved}",
        f"GET {HEAD}",
        f"GET {script.pack}",
    ]


def test_a_redirection_leads_to_http_and_ends(script: Script, down: Downstream) -> None:
    for location, words, requests in (
        ("file:///etc/passwd", None, 1),
        (HEAD, "more than 5 redirects", 5),
    ):
        script.replies[HEAD] = Reply(status=302, location=location)
        script.requests.clear()
        with pytest.raises(UpstreamError, match=words):
            down.fetch(f"{script.url}/m.git")
        assert len(script.requests) == requests


def test_what_is_not_a_missing_head_never_leads_to_git(script: Script, down: Downstream) -> None:
    for status in (401, 403, 429, 500, 503):
        script.replies[HEAD] = Reply(status=status)
        with pytest.raises(UpstreamError, match=f"HTTP {status}"):
            down.fetch(f"{script.url}/m.git")
    assert {each.line for each in script.requests} == {f"GET {HEAD}"}


class Endless:
    """A server that says one thing, and then another for ever."""

    def __init__(self, first: bytes, again: bytes) -> None:
        self._answers = first, again
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/m.git"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(65_536)
                    client.sendall(self._answers[0])
                    while not self._over.wait(0.01):
                        client.sendall(self._answers[1])


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_what_never_ends_is_ended() -> None:
    for first, again in (
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: anything at all\r\n" * 40),
        (b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n", b"x" * 4000),
        (CHUNKED + b"0\r\n", b"X-Trailer: anything at all\r\n" * 40),
        (CHUNKED, chunk(b"x") * 2),
    ):
        # As fast as a good line, or slow: neither silence nor, counted by bytes, a trickle.
        with Endless(first, again) as server, pytest.raises(HuaiError):
            find_newest(MetadataUrl(server.url), timeout=1)


def test_the_deadline_ends_an_answer_that_comes_well() -> None:
    with Endless(CHUNKED, chunk(b"pack" * 1000)) as server:
        request = MetadataUrl(server.url), Request("static/packs/1.pack")
        with send(*request, timeout=60, deadline=Deadline.after(1)) as answer:
            with pytest.raises(TimeUpError):
                answer.read_all(1 << 40)
    with silent() as hole, pytest.raises(TimeUpError):
        find_newest(MetadataUrl(f"http://{hole}/m.git"), timeout=60, deadline=Deadline.after(1))


def test_the_login_goes_to_the_upstream_and_nobody_else(
    script: Script, mirror: Mirror, down: Downstream
) -> None:
    address = script.url.replace("http://", "http://me:s%40fe@")
    script.serve(mirror.head, mirror.pack)
    down.fetch(f"{address}/m.git")
    login = "Basic " + base64.b64encode(b"me:s@fe").decode()
    assert [asked.login for asked in script.requests] == [login, login]
    with scripted() as other:
        other.serve(mirror.head, mirror.pack)
        script.replies[HEAD] = Reply(status=302, location=f"{other.url}{HEAD}")
        down.fetch(f"{address}/m.git")
        assert [asked.login for asked in other.requests] == [None, None]
    script.replies[HEAD] = Reply(status=500)
    with pytest.raises(UpstreamError) as error:
        down.fetch(f"{address}/m.git")
    assert "s%40fe" not in str(error.value)
