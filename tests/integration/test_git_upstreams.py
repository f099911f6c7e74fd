"""Upstreams that have no static files: git servers of each kind, sound and hostile."""

import os
import resource
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from huai_client.metadata.git import process
from huai_client.metadata.git.program import GitMissingError
from huai_client.metadata.http import (
    MetadataUrl,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
    UpstreamTimeoutError,
)
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import RefusedBeforeError, Repository
from huai_client.run.options import Deadline, TimeUpError
from huai_schema.errors import ExitCode, FormatError
from tests.support.committing import Upstream, git
from tests.support.git_backend import git_backend
from tests.support.listening import listening
from tests.support.packs import PackObjects, full_record, pack
from tests.support.pktline import FLUSH_PACKET, packet
from tests.support.scripted_upstream import Reply, Script, scripted

ADVERT = "/m.git/info/refs?service=git-upload-pack"
SECONDS = 30


@pytest.fixture
def up(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path / "up")
    upstream.write("f", "1")
    upstream.commit()
    return upstream


@contextmanager
def daemon(folder: Path) -> Iterator[str]:
    """`git daemon` for all below `folder`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["git", "daemon", "--export-all", "--reuseaddr", "--listen=127.0.0.1"]
    command += [f"--port={port}", f"--base-path={folder}", str(folder)]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(SECONDS * 20):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(running.pid, 15)
        running.wait(SECONDS)


def ssh(monkeypatch: pytest.MonkeyPatch, script: Path, text: str) -> None:
    """Let `text` stand for ssh."""
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))


@pytest.mark.parametrize("kind", ["path", "file", "git", "ssh", "scp", "http"])
def test_each_kind_of_git_server(
    up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    served = up.places.repository
    ssh(monkeypatch, tmp_path / "ssh", 'for last; do :; done; exec sh -c "$last"')
    with git_backend(served.parent) as http, daemon(served.parent) as address:
        url = MetadataUrl(
            {
                "path": str(served),
                "file": f"file://{served}",
                "git": f"{address}/{served.name}",
                "ssh": f"ssh://user@host{served}",
                "scp": f"host:{served}",
                "http": f"{http}/{served.name}",
            }[kind]
        )
        copy = tmp_path / "copy"
        for number in range(3):
            commit = Repository(copy).fetch(url)
            assert commit.id == up.head.commit == find_newest(url).commit
            Repository(copy).keep([commit.id])
            git(copy, "fsck", "--full", "--strict", "--no-dangling")
            up.write(f"f{number}", "2")
            up.commit()


def test_a_path_of_another_owner(up: Upstream, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    for path in (up.places.repository, *up.places.repository.rglob("*")):
        os.chown(path, 1234, 1234)
    url = MetadataUrl(str(up.places.repository))
    assert Repository(tmp_path / "copy").fetch(url).id == up.head.commit


def test_what_is_refused_goes_and_is_not_fetched_again(up: Upstream, tmp_path: Path) -> None:
    url, copy = MetadataUrl(str(up.places.repository)), tmp_path / "copy"
    commit = Repository(copy).fetch(url).id
    Repository(copy).keep([commit])
    before = {path.name for path in (copy / "objects/pack").iterdir()}
    up.write("f", "22")
    up.commit()

    def refuse(*_: object) -> None:
        raise FormatError("not to be believed")

    store = Repository(copy)
    with pytest.raises(FormatError, match="not to be believed"):
        store.fetch(url, judge=refuse)
    assert {path.name for path in (copy / "objects/pack").iterdir()} == before
    assert store.fetched == commit
    with pytest.raises(RefusedBeforeError):
        Repository(copy).fetch(url)


def test_what_is_no_upstream(tmp_path: Path, subtests: pytest.Subtests) -> None:
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    with scripted() as script:
        for url, kind, words in (
            (f"{script.url}/m.git", NotServedError, "has no such module"),
            (f"{tmp_path}/nothing", UpstreamError, "does not appear to be a git repository"),
            (f"{tmp_path}/empty.git", NotServedError, "nothing is committed there yet"),
            ("ext::sh -c true", UpstreamError, None),
            ("--upload-pack=true", UpstreamError, None),
            ("ftp://127.0.0.1/m.git", UpstreamError, None),
            ("git://127.0.0.1:1/m.git", UpstreamDownError, None),
            ("ssh://127.0.0.1:1/m.git", UpstreamDownError, None),
        ):
            with subtests.test(url), pytest.raises(kind, match=words):
                find_newest(MetadataUrl(url))


def test_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with scripted() as script, pytest.raises(GitMissingError, match="no static files") as error:
        find_newest(MetadataUrl(f"{script.url}/m.git"))
    assert error.value.exit_code == ExitCode.REQUIREMENT
    assert "install git" in error.value.hint


# ---------------------------------------------------------------- HTTP


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script


def test_a_redirection_is_not_followed_and_gets_no_login(script: Script) -> None:
    address = script.url.replace("http://", "http://me:s%40fe@")
    with scripted() as other:
        script.replies[ADVERT] = Reply(status=302, location=f"{other.url}{ADVERT}")
        with pytest.raises(UpstreamError, match="302") as error:
            find_newest(MetadataUrl(f"{address}/m.git"))
        assert other.requests == []
    assert [each.login is None for each in script.requests] == [False, False]
    assert "s%40fe" not in str(error.value)
    assert "redirects" in error.value.hint


def test_what_is_no_git_server(script: Script) -> None:
    page = Reply(b"<html>\n<body>\n</html>\n", content_type="text/html")
    for reply, kind, words in (
        (Reply(status=401), UpstreamError, "~/.netrc"),
        (page, UpstreamError, "is this a git repository"),
        (Reply(status=503), UpstreamDownError, "503"),
    ):
        script.replies[ADVERT] = reply
        with pytest.raises(kind) as error:
            find_newest(MetadataUrl(f"{script.url}/m.git"))
        assert words in f"{error.value.message} {error.value.hint}"


def test_the_login_comes_from_netrc_and_no_variable_of_git_counts(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password safe\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'http.extraheader=X: 1'")
    with pytest.raises(NotServedError):
        find_newest(MetadataUrl(f"{script.url}/m.git"))
    assert {each.login for each in script.requests} == {"Basic bWU6c2FmZQ=="}
    assert not (tmp_path / "trace").exists()


# ---------------------------------------------------------------- hostile servers

Hear = Callable[[Callable[[bytes], None]], None]
"""Is given what sends bytes to the client."""


@contextmanager
def hostile(speak: Hear) -> Iterator[MetadataUrl]:
    """A server that sends the same to every client, whatever the request."""

    def serve_client(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(1 << 16)
            speak(client.sendall)
            while client.recv(1 << 16):
                pass

    with listening(serve_client) as port:
        yield MetadataUrl(f"git://127.0.0.1:{port}/m.git")


class Mirror:
    """A commit, and what a server says about it."""

    def __init__(self, blob: bytes = b"x") -> None:
        self.objects = PackObjects()
        self.commit = self.objects.commit(self.objects.tree(m=self.objects.blob(blob)))
        capabilities = b"shallow side-band-64k ofs-delta"
        line = b"%b refs/heads/main\0%b\n" % (self.commit.encode(), capabilities)
        self.start = packet(line) + FLUSH_PACKET + FLUSH_PACKET + packet(b"NAK\n")
        self.pack = pack(
            [full_record(found.data, found.kind) for found in self.objects.objects.values()]
        )

    def in_sidebands(self, pack: bytes) -> bytes:
        """The pack in side-bands."""
        parts = [packet(b"\x01" + pack[at : at + 60_000]) for at in range(0, len(pack), 60_000)]
        return self.start + b"".join(parts) + FLUSH_PACKET


def forever(send: Callable[[bytes], None], first: bytes, again: bytes, pause: float = 0) -> None:
    send(first)
    while True:
        send(again)
        time.sleep(pause)


def _send(answer: bytes, send: Callable[[bytes], None]) -> None:
    send(answer)


def traces(folder: Path) -> list[str]:
    """Return the files that a fetch left."""
    return [path.name for path in (folder / "objects" / "pack").iterdir()]


def test_a_pack_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LIMITS", ((resource.RLIMIT_FSIZE, 1 << 20),))
    mirror = Mirror(os.urandom(4 << 20))
    store = Repository(tmp_path / "copy", timeout=SECONDS)
    with hostile(lambda send: send(mirror.in_sidebands(mirror.pack))) as url:
        with pytest.raises(FormatError, match="File too large"):
            store.fetch(url)
        store = Repository(tmp_path / "copy", timeout=SECONDS)
        with pytest.raises(RefusedBeforeError):
            store.fetch(url)
    assert not [name for name in traces(tmp_path / "copy") if name.startswith("pack-")]


def test_a_pack_that_unfolds_to_more_than_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LIMITS", ((resource.RLIMIT_DATA, 48 << 20),))
    mirror = Mirror(bytes(60 << 20))
    assert len(mirror.pack) < 1 << 20
    with hostile(lambda send: send(mirror.in_sidebands(mirror.pack))) as url:
        with pytest.raises(FormatError, match="memory"):
            Repository(tmp_path / "copy", timeout=SECONDS).fetch(url)


def test_a_computation_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LIMITS", ((resource.RLIMIT_CPU, 1),))
    mirror, size, piece = Mirror(), 2 << 30, bytes(16 << 20)
    deflater = zlib.compressobj(1, wbits=-15)
    block = deflater.compress(piece) + deflater.flush(zlib.Z_FULL_FLUSH)
    checksum, times = 1, size // len(piece)
    for _ in range(times):
        checksum = zlib.adler32(piece, checksum)
    data = b"\x78\x01" + block * times + b"\x03\x00" + checksum.to_bytes(4, "big")
    header = bytearray([3 << 4 | size & 15 | 128])
    size >>= 4
    while size > 127:
        header.append(size & 127 | 128)
        size >>= 7
    header.append(size)
    large = pack([bytes(header) + data])
    with hostile(lambda send: send(mirror.in_sidebands(large))) as url:
        with pytest.raises(FormatError, match="index-pack"):
            Repository(tmp_path / "copy", timeout=SECONDS).fetch(url)


def test_a_pack_that_lacks_something(tmp_path: Path) -> None:
    mirror = Mirror()
    for number, left_out in enumerate(mirror.objects.objects):
        records = [
            full_record(found.data, found.kind)
            for oid, found in mirror.objects.objects.items()
            if oid != left_out
        ]
        copy = tmp_path / str(number)
        with hostile(partial(_send, mirror.in_sidebands(pack(records)))) as url:
            with pytest.raises(FormatError):
                Repository(copy, timeout=SECONDS).fetch(url)
        assert not [name for name in traces(copy) if name.startswith("pack-")]


def test_silence_and_talk(tmp_path: Path) -> None:
    for first in (b"", b"004e"):
        with hostile(lambda send, first=first: send(first)) as url:  # type: ignore[misc]
            with pytest.raises(UpstreamTimeoutError):
                find_newest(url, timeout=0.5)
    line = packet(b"%b refs/heads/x\n" % (b"1" * 40)) * 1000
    with hostile(lambda send: forever(send, b"", line, 0.01)) as url:
        with pytest.raises(UpstreamTimeoutError):
            find_newest(url, timeout=1)
    start, talk = Mirror().start, packet(b"\x02still here\n")
    with hostile(lambda send: forever(send, start, talk, 0.05)) as url:
        with pytest.raises(UpstreamTimeoutError, match="too slowly"):
            Repository(tmp_path / "copy", timeout=1).fetch(url)
    talk = packet(b"\x02" + b"talk\n" * 1000)
    with hostile(lambda send: forever(send, start, talk)) as url:
        with pytest.raises(FormatError, match="more other output than pack"):
            Repository(tmp_path / "another", timeout=SECONDS).fetch(url)
    with hostile(lambda send: send(start)) as url, pytest.raises(TimeUpError):
        Repository(tmp_path / "third").fetch(url, Deadline.after(1))


def test_what_it_says_is_one_printable_line() -> None:
    with hostile(lambda send: send(packet(b"ERR no\x1b[2J\nway\xff" + b"x" * 5000))) as url:
        with pytest.raises(UpstreamError, match="remote error: no") as error:
            find_newest(url)
    assert error.value.message.isprintable()
    assert len(error.value.message) < 1000


def test_all_processes_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh(monkeypatch, tmp_path / "ssh", f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    with pytest.raises(UpstreamTimeoutError):
        find_newest(MetadataUrl("ssh://host/m.git"), timeout=0.5)
    state = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
