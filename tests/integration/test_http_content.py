"""Content from a real nginx: whole files, the rest of files, and missing ones."""

import os
import resource
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.metadata.http import MetadataUrl, UpstreamError
from huai_client.metadata.newest import find_newest
from huai_client.run.options import Deadline
from huai_client.staging import Staging
from huai_client.staging.journals import hashed
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import ConnectionBrokenError, TransferError, UpstreamRefusedError
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.certificate import make_certificate
from tests.support.nginx import Nginx, nginx
from tests.support.rsyncd import rsync_daemon
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.staged import ready
from tests.support.transfers import TEST_OPTIONS, Downstream, described, put_many, write_file
from tests.support.weak_network import tunnel

T0 = 1_600_000_000_123_456_789
MIB = 1 << 20


@pytest.fixture(name="certificate")
def trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A certificate and its key, trusted as the metadata's HTTPS trusts."""
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    return certificate


@pytest.fixture(name="file")
def small_file(upstream: Path) -> File:
    return write_file(upstream, b"a", b"1")


def statuses(server: Nginx) -> list[str]:
    return [line.split()[1] for line in server.requests]


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/1.1 by TLS", "HTTP/2.0"])
def test_files_of_every_size(
    upstream: Path, down: Downstream, certificate: tuple[Path, Path], protocol: str
) -> None:
    files = [write_file(upstream, b"empty", b"", mtime=T0)]
    files += [
        write_file(upstream, b"s/%d" % size, os.urandom(size)) for size in (1, 4095, 70_000, MIB)
    ]
    files += put_many(upstream, 300, 100)
    tls = None if protocol == "HTTP/1.1" else certificate
    with nginx(upstream, tls=tls, http2=protocol == "HTTP/2.0") as server:
        outcome = down.fetch(files, server.url)
        assert outcome.complete
        assert len(server.requests) == len(files) - 1, "an empty file needs no request"
        assert all(line.startswith(protocol[:8]) for line in server.requests)
    assert outcome.bytes_received > sum(file.size for file in files)


def test_holes_stay_holes(upstream: Path, down: Downstream) -> None:
    with (upstream / "sparse").open("wb") as opened:
        opened.write(b"begin")
        opened.truncate(8 * MIB)
    file = described(upstream, b"sparse")
    with nginx(upstream) as server:
        assert down.fetch([file], server.url).complete
    with Staging(down.root) as staging:
        staging.recover([file])
        assert ready(staging, file).stat().st_blocks * 512 < MIB


def test_every_name(upstream: Path, down: Downstream) -> None:
    names = (
        b"a b", b"%41", b"q?x=1", b"f#g", b"\xff\xfe", b"\xc3\xa4", b"-x", b"n\nl", b"t\tb", b"a;b",
        b"s/..x/y", b"s/.hidden", b"~", b"'\"", b"*[]", b"\\", b"c:d", b"@", b"&=+$,", b"x" * 200,
    )  # fmt: skip
    files = [write_file(upstream, name, name * 3) for name in names]
    with nginx(upstream) as server:
        assert down.fetch(files, f"{server.url}/").complete
    write_file(upstream, b"pub/my tree/d/f", b"content")
    file = write_file(upstream / "pub/my tree", b"d/f", b"content")
    with nginx(upstream) as server:
        assert down.fetch([file], f"{server.url}/pub/my%20tree").complete


@pytest.mark.parametrize("limit", ["keepalive_requests 100;", "http2_max_concurrent_streams 7;"])
def test_many_files_over_few_connections(
    upstream: Path, down: Downstream, certificate: tuple[Path, Path], limit: str
) -> None:
    files = put_many(upstream, 2500, 50)
    with nginx(upstream, tls=certificate, http2=True, outside=limit) as server:
        assert down.fetch(files, server.url).complete
        assert down.listener.retries == []
        assert len(server.requests) == 2500


def test_a_fetch_that_ends_early_leaves_no_file_open(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 20, 100_000)
    before = set(os.listdir("/proc/self/fd"))
    options = replace(TEST_OPTIONS, deadline=Deadline.after(1))
    with nginx(upstream, location="limit_rate 10k;") as server:
        assert len(down.fetch(files, server.url, options).late) == 20
    assert set(os.listdir("/proc/self/fd")) == before


def test_few_files_may_be_open(
    upstream: Path, down: Downstream, certificate: tuple[Path, Path]
) -> None:
    files = put_many(upstream, 300, 100_000)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = len(os.listdir("/proc/self/fd"))
    with nginx(upstream, tls=certificate, http2=True) as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 60, limits[1]))
        try:
            assert down.fetch(files, server.url).complete
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_next_server_is_asked_for_missing_files(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 20, 100)
    old = upstream.with_name("old")
    shutil.copytree(upstream, old)
    (old / "f/3").unlink()
    (old / "f/4").write_bytes(b"shorter")
    with nginx(old) as stale, nginx(upstream) as server:
        assert down.fetch(files, [stale.url, server.url]).complete
        assert len(stale.requests) == 20
        assert [line.split()[-1] for line in server.requests] == ["/f/3", "/f/4"]
        shutil.rmtree(down.root)
        outcome = down.fetch(files, stale.url)
    assert [file.path for file in outcome.missing] == [b"f/3"]
    assert [file.path for file in outcome.mismatched] == [b"f/4"]
    assert len(outcome.arrived) == 18


@pytest.mark.parametrize("first", ["rsync", "http"])
def test_rsync_and_http_in_one_list(upstream: Path, down: Downstream, first: str) -> None:
    old = upstream.with_name("old")
    files = put_many(upstream, 20, 100)
    shutil.copytree(upstream, old)
    (old / "f/3").unlink()
    by_rsync, by_http = (old, upstream) if first == "rsync" else (upstream, old)
    with rsync_daemon({"m": by_rsync}) as daemon, nginx(by_http) as server:
        urls = [f"{daemon}/m", server.url]
        assert down.fetch(files, urls if first == "rsync" else urls[::-1]).complete
        assert len(server.requests) == (1 if first == "rsync" else 20)


def test_forbidden_files_are_refused(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 20, 100)
    with nginx(upstream, location="if ($uri = /f/7) { return 403; }") as server:
        outcome = down.fetch(files, server.url)
    assert [refused.file.path for refused in outcome.refused] == [b"f/7"]
    assert len(outcome.arrived) == 19
    shutil.rmtree(down.root)
    with nginx(upstream, location="deny all;") as server:
        with pytest.raises(UpstreamRefusedError, match="HTTP 403"):
            down.fetch(files, server.url)
        assert len(server.requests) < 20


def test_without_a_digest_size_and_time_decide(upstream: Path, down: Downstream) -> None:
    files = [
        write_file(upstream, name, b"content", mtime=T0)._replace(digest=None)
        for name in (b"a", b"b")
    ]
    os.utime(upstream / "b", ns=(T0 + 10**9, T0 + 10**9))
    with nginx(upstream) as server:
        outcome = down.fetch(files, server.url)
    assert [file.path for file in outcome.arrived] == [b"a"]
    assert [file.path for file in outcome.mismatched] == [b"b"]


def test_a_volatile_file_comes_with_its_new_size_and_time(upstream: Path, down: Downstream) -> None:
    old = [
        write_file(upstream, name, b"old", mtime=T0)
        for name in (b"newer", b"older", b"same", b"none")
    ]
    write_file(upstream, b"newer", b"changed since", mtime=T0 + 5 * 10**9)
    write_file(upstream, b"older", b"older one", mtime=T0 - 5 * 10**9)
    write_file(upstream, b"none", b"", mtime=T0 + 5 * 10**9)
    options = replace(TEST_OPTIONS, volatile=frozenset(file.path for file in old))
    with nginx(upstream) as server:
        outcome = down.fetch(old, server.url, options)
    assert sorted(file.path for file in outcome.arrived) == [b"newer", b"none", b"same"]
    newer = outcome.newer[RelPath(b"newer")]
    assert (newer.size, newer.mtime // 10**9) == (13, T0 // 10**9 + 5)
    assert outcome.newer[RelPath(b"none")].size == 0
    assert [file.path for file in outcome.unchanged] == [b"older"]


def put_beginning(down: Downstream, path: bytes, content: bytes) -> None:
    """Write a file as an interrupted run leaves it."""
    with Staging(down.root) as staging:
        place = staging.root / "incoming" / "7" / os.fsdecode(path)
        place.parent.mkdir(parents=True)
        place.write_bytes(content)


def test_a_file_without_a_digest_is_fetched_as_a_whole(upstream: Path, down: Downstream) -> None:
    """Even if the file that an interrupted run left has its size and time."""
    file = write_file(upstream, b"plain", b"right\n", mtime=T0)._replace(digest=None)
    with Staging(down.root) as staging:
        left = staging.root / "partial" / os.fsdecode(hashed(file.path))
        left.write_bytes(b"stale\n")
        os.utime(left, ns=(T0, T0))
    with nginx(upstream) as server:
        assert down.fetch([file], server.url).complete
        assert len(server.requests) == 1
    with Staging(down.root) as staging:
        staging.recover([file])
        assert ready(staging, file).read_bytes() == b"right\n"


def test_the_rest_of_a_file_is_fetched(
    upstream: Path, down: Downstream, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    content = os.urandom(3 * MIB)
    file = write_file(upstream, b"d/large", content)
    put_beginning(down, b"d/large", content[: 2 * MIB])
    with nginx(upstream) as server:
        outcome = down.fetch([file], server.url)
        assert outcome.complete
        assert [line.split()[1:4] for line in server.requests] == [
            ["206", f'"bytes={2 * MIB}-{3 * MIB - 1}"', str(MIB)]
        ]
    assert MIB < outcome.bytes_received < MIB + 2000
    content = content[:MIB]
    digested = write_file(upstream, b"large", content, mtime=T0)
    for name, file, beginning, location, expected in [
        ("the beginning of another", digested, os.urandom(1000), "", ["206", "200"]),
        ("all but the time", digested, content, "", []),
        ("no ranges", digested, content[:1000], "max_ranges 0;", ["200"]),
        ("no digest", digested._replace(digest=None), content[:1000], "", ["200"]),
    ]:
        with subtests.test(name), nginx(upstream, location=location) as server:
            down = Downstream(tmp_path / name)
            put_beginning(down, b"large", beginning)
            assert down.fetch([file], server.url).complete
            assert statuses(server) == expected


@pytest.mark.parametrize("bwlimit", [0, 200])
def test_a_partial_file_is_kept_at_the_deadline(
    upstream: Path, down: Downstream, bwlimit: int
) -> None:
    """The server is slow, or `bwlimit` is low."""
    small = write_file(upstream, b"a", b"small")
    file = write_file(upstream, b"large", os.urandom(MIB))
    options = replace(TEST_OPTIONS, deadline=Deadline.after(2), bwlimit=bwlimit)
    slow = "" if bwlimit else "limit_rate 200k; limit_rate_after 100k;"
    with nginx(upstream, location=slow) as server:
        outcome = down.fetch([small, file], server.url, options)
    assert outcome.late == [file]
    assert outcome.arrived == [small]
    with nginx(upstream) as server:
        assert down.fetch([small, file], server.url).complete
        (line,) = server.requests
    first = int(line.split('"')[1].removeprefix("bytes=").partition("-")[0])
    assert 100_000 < first < MIB


@pytest.mark.parametrize("http2", [False, True])
def test_a_server_that_has_enough_for_now(
    upstream: Path, down: Downstream, certificate: tuple[Path, Path], http2: bool
) -> None:
    files = put_many(upstream, 60, 100)
    zone = "limit_req_zone $binary_remote_addr zone=one:1m rate=30r/s;"
    location = "limit_req zone=one burst=5 nodelay; limit_req_status 429;"
    options = replace(TEST_OPTIONS, hosts=Hosts(), patience=60)
    with nginx(upstream, tls=certificate, http2=http2, location=location, outside=zone) as server:
        assert down.fetch(files, server.url, options).complete
        assert statuses(server).count("200") == 60
        assert "429" in statuses(server)
    assert len(down.listener.waits) == 1


def test_no_more_connections_than_allowed(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    """nginx refuses a request while another one runs."""
    files = put_many(upstream, 30, 20_000)
    zone = "limit_conn_zone $binary_remote_addr zone=one:1m;"
    options = replace(TEST_OPTIONS, hosts=Hosts(tmp_path), connections=1, patience=0)
    with nginx(upstream, location="limit_conn one 1; limit_rate 100k;", outside=zone) as server:
        assert down.fetch(files, server.url, options).complete
        assert {*statuses(server)} == {"200"}


def test_certificates_that_are_refused(
    file: File, upstream: Path, down: Downstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path, "DNS:other.example")
    for trusted in ("", "/nonexistent"):
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", trusted)
        with (
            nginx(upstream, tls=certificate) as server,
            pytest.raises(UpstreamRefusedError, match="certificate"),
        ):
            down.fetch([file], server.url)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with nginx(upstream, tls=certificate) as server:
        with pytest.raises(UpstreamRefusedError, match="certificate") as by_libcurl:
            down.fetch([file], server.url)
        with pytest.raises(UpstreamError, match="certificate") as by_openssl:
            find_newest(MetadataUrl(server.url))
    assert "other names" in by_libcurl.value.hint
    assert "other names" in by_openssl.value.hint


def test_a_server_that_speaks_the_other_scheme(
    file: File, upstream: Path, down: Downstream, certificate: tuple[Path, Path]
) -> None:
    with nginx(upstream) as server, pytest.raises(ConnectionBrokenError) as caught:
        down.fetch([file], server.url.replace("http:", "https:"))
    assert "TLS" in caught.value.hint
    with nginx(upstream, tls=certificate) as server:
        outcome = down.fetch([file], server.url.replace("https:", "http:"))
    assert [refused.file for refused in outcome.refused] == [file], "HTTP 400"


def test_logins(
    file: File, upstream: Path, down: Downstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, netrc = tmp_path / "users", tmp_path / "netrc"
    users.write_text("me:{PLAIN}secret\n")
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    location = f"auth_basic closed; auth_basic_user_file {users};"
    with nginx(upstream, location=location) as server:
        with pytest.raises(UpstreamRefusedError, match="HTTP 401"):
            down.fetch([file], server.url)
        monkeypatch.setenv("NETRC", str(netrc))
        assert down.fetch([file], server.url).complete
    headers = tmp_path / "headers"
    headers.write_text("X-Token: secret\n")
    headers.chmod(0o600)
    options = replace(TEST_OPTIONS, http_headers=headers)
    with nginx(upstream, location='if ($http_x_token != "secret") { return 401; }') as server:
        assert Downstream(tmp_path / "another").fetch([file], server.url, options).complete


def test_through_a_proxy(upstream: Path, down: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    files = put_many(upstream, 5, 100)
    url = "http://mirror.invalid/m/"

    def reply(question: Request) -> Reply:
        return Reply(body=(upstream / question.path.removeprefix(url)).read_bytes())

    with scripted(reply) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert down.fetch(files, url).complete
        assert all(question.path.startswith(url) for question in proxy.questions)


def test_through_a_tunnel(
    upstream: Path,
    down: Downstream,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = put_many(upstream, 50, 100)
    with nginx(upstream, tls=certificate, http2=True) as server, tunnel() as (proxy, heads):
        monkeypatch.setenv("https_proxy", f"http://{proxy}")
        assert down.fetch(files, server.url).complete
        assert all(line.startswith("HTTP/2.0") for line in server.requests)
    assert len(heads) == 1, "all requests share a connection"
    assert heads[0].startswith(b"CONNECT 127.0.0.1:")


def test_a_proxy_that_wants_a_login(
    file: File, down: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = b"<html>Please log in</html>"
    with scripted(lambda _: Reply("407 Proxy Authentication Required", (), page)) as proxy:
        for scheme in ("http", "https"):
            monkeypatch.setenv(f"{scheme}_proxy", proxy.url)
            with pytest.raises(TransferError):
                down.fetch([file], f"{scheme}://mirror.invalid/m")


@pytest.mark.parametrize("scheme", ["http", "rsync"])
def test_a_proxy_that_is_down_is_named(
    file: File, down: Downstream, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """With the variable that names it, for content and for metadata."""
    variable = "RSYNC_PROXY" if scheme == "rsync" else "http_proxy"
    monkeypatch.setenv(variable, "127.0.0.1:1")
    with pytest.raises(TransferError, match=f"127.0.0.1:1 of {variable}: ") as content:
        down.fetch([file], f"{scheme}://mirror.invalid/m")
    assert variable in content.value.hint
    if scheme == "http":
        with pytest.raises(UpstreamError, match=f"127.0.0.1:1 of {variable}: ") as head:
            find_newest(MetadataUrl("http://mirror.invalid/m.git"))
        assert variable in head.value.hint
