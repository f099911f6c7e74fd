"""Web hooks of a real `serve`, and which commits they report."""

import hashlib
import hmac
import json
import shutil
import signal
import ssl
import subprocess
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

from huai_program.post import Hook, PostError, post
from huai_server.config import load as config
from huai_server.config import tables as config_tables
from huai_server.config.tables import WebHook
from huai_server.http.resolver import UnreachableError
from huai_server.http.webhooks.keeper import deliver, origin_of
from tests.support.certificate import make_certificate
from tests.support.committing import NAME, Upstream
from tests.support.hook_receiver import Receiver, receiver, status
from tests.support.processes import until
from tests.support.scripted_http import Reply, Request, scripted
from tests.support.serving import serving

SECRET = b"correct horse"


@pytest.fixture
def up(tmp_path: Path) -> Upstream:
    up = Upstream(tmp_path)
    up.write("a", "1")
    up.commit()
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    return up


def hooked(up: Upstream, *urls: str, internal: bool = True) -> None:
    secret = str(up.tree.parent / "secret")
    up.configure(webhooks=tuple(config_tables.WebHook(url, secret, internal) for url in urls))
    if NAME in config.load(up.root).modules:
        config.remove_module(up.root, NAME)
    config.add_module(up.root, NAME, up.module)


def serials(hook: Receiver) -> list[int]:
    return [request.message["serial"] for request in hook.got]


def test_a_commit_is_reported_and_signed(up: Upstream) -> None:
    with receiver() as hook, receiver() as other:
        hooked(up, f"{hook.url}/path?key=1", other.url)
        with serving(up.root):
            until(lambda: serials(hook) == [1] == serials(other))
            up.write("a", "22")
            head = up.commit().head
            until(lambda: serials(hook) == [1, 2] == serials(other))
    got = hook.got[-1]
    body = got.message
    assert abs(body.pop("sent") - time.time()) < 3600
    assert body.pop("delivery") == got.headers["x-huai-delivery"]
    ids = {"commit": head.commit, "tree": head.tree, "time": head.time}
    assert body == {"event": "commit", "module": NAME, "serial": 2, **ids}
    proof = hmac.new(SECRET, got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-hub-signature-256"] == f"sha256={proof}"
    assert (got.path, got.headers["content-type"]) == ("/path?key=1", "application/json")


def test_what_may_pass_is_tried_again_and_a_newer_commit_comes_first(up: Upstream) -> None:
    with receiver(status(500), status(503), status(200)) as hook:
        hooked(up, hook.url)
        with serving(up.root):
            until(lambda: len(hook.got) == 3)
    assert len({request.message["delivery"] for request in hook.got}) == 1
    with receiver(status(500)) as broken:
        hooked(up, broken.url)
        with serving(up.root) as server:
            until(lambda: serials(broken) == [1])
            up.write("a", "22")
            up.commit()
            until(lambda: 2 in serials(broken))
            until(lambda: "was not notified of serial 1: HTTP 500" in server.log.read_text())
            assert server.stop() == 0


def test_no_redirection_is_followed(up: Upstream) -> None:
    with receiver() as inner, receiver(status(302, Location=f"{inner.url}/x")) as hook:
        hooked(up, hook.url)
        with serving(up.root) as server:
            until(lambda: "was not notified of serial 1: HTTP 302" in server.log.read_text())
        assert (len(hook.got), inner.got) == (1, [])


def test_an_address_of_this_network_has_to_be_allowed(up: Upstream) -> None:
    with receiver() as hook:
        port = hook.url.rpartition(":")[2]
        hooked(up, f"http://localhost:{port}/very/secret?token=1", internal=False)
        with serving(up.root) as server:
            until(lambda: "an address of this network" in server.log.read_text())
            log = server.log.read_text()
            assert "internal = true" in log
            assert "secret" not in log
            hooked(up, hook.url)  # the file is read again
            until(lambda: serials(hook) == [1])


def test_all_spellings_of_such_an_address_are_refused(up: Upstream) -> None:
    internal = ("127.1", "0x7f.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254")
    for host in (*internal, "100.64.0.1"):
        hook = WebHook(f"http://{host}:9/", str(up.tree.parent / "secret"), internal=False)
        with pytest.raises(UnreachableError, match="of this network") as refused:
            deliver(hook, {}, "1", lambda: False)
        assert not refused.value.may_pass, host


@pytest.mark.parametrize(("name", "reason"), [("none", "No such file"), ("empty", "is empty")])
def test_without_a_secret_nothing_is_sent(up: Upstream, name: str, reason: str) -> None:
    folder = up.tree.parent
    (folder / "empty").write_bytes(b"\n")
    with receiver() as hook, pytest.raises(UnreachableError, match=reason):
        deliver(WebHook(hook.url, str(folder / name), internal=True), {}, "1", lambda: False)
    assert hook.got == []


def test_a_silent_receiver_delays_no_commit_and_no_stop(up: Upstream) -> None:
    stopped = Event()

    def silent(_: BaseHTTPRequestHandler) -> None:
        stopped.wait()

    with ExitStack() as stack:
        hook = stack.enter_context(receiver(silent))
        stack.callback(stopped.set)
        hooked(up, hook.url)
        with serving(up.root) as server:
            until(lambda: len(hook.got) == 1)
            up.write("a", "22")
            assert up.commit().changed
            assert server.stop(signal.SIGTERM) == 0


def test_a_log_names_no_path_and_no_login() -> None:
    assert origin_of("https://user:word@host:8443/services/T0/B0?key=1") == "https://host:8443"


def test_the_authorities_are_those_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel of pycurl looks for them where the machine had them that built it."""
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with scripted(lambda _: Reply("204 No Content"), context) as server:
        hook = Hook(f"{server.url}/hook", "huai-server", 30)
        with pytest.raises(PostError, match="self-signed"):
            post(hook, {}, {})
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert post(hook, {"a": 1}, {"X-Huai-Event": "commit"}) == 204
        (request,) = server.questions
    assert (request.path, request.headers["x-huai-event"]) == ("/hook", "commit")
    assert request.headers["user-agent"].startswith("huai-server/")


def test_a_bundle_is_not_read_where_its_folder_has_the_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing the system's bundle takes longer than the rest of a poll."""
    certificate, key = make_certificate(tmp_path)
    folder = tmp_path / "certs"
    folder.mkdir()
    bundle = folder / "ca-certificates.crt"
    shutil.copy(certificate, bundle)
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    paths = ("SSL_CERT_FILE", str(bundle), "SSL_CERT_DIR", str(folder))
    monkeypatch.setattr("_ssl.get_default_verify_paths", lambda: paths)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with scripted(lambda _: Reply("204 No Content"), context) as server:
        hook = Hook(f"{server.url}/hook", "huai-server", 30)
        assert post(hook, {}, {}) == 204  # by the bundle: the folder has no names by hash
        bundle.write_text("not parsed")
        with pytest.raises(PostError):
            post(hook, {}, {})
        shutil.copy(certificate, folder)
        subprocess.run(["openssl", "rehash", folder], check=True)
        assert post(hook, {}, {}) == 204
        (link,) = folder.glob("*.0")
        link.rename(folder / "00000000.0")
        bundle.write_bytes(2 * certificate.read_bytes())
        assert post(hook, {}, {}) == 204  # the bundle has one that the folder lacks


def test_an_answer_has_a_bound() -> None:
    def endless(_: Request) -> Reply:
        return Reply(body=json.dumps("x" * (1 << 20)).encode())

    with scripted(endless) as server, pytest.raises(PostError):
        post(Hook(server.url, "huai-client", 30), {}, {})
