"""Web hooks of a real `serve`, and who hears of which commit."""

import hashlib
import hmac
import signal
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

from huai_server.config import load as config
from huai_server.config import tables as config_tables
from huai_server.http.settings import WebHook
from huai_server.http.webhooks.delivery import DeliveryError, deliver, shown
from tests.support.committing import NAME, Upstream
from tests.support.hook_receiver import Receiver, receiver, status
from tests.support.processes import until
from tests.support.serving import serving

SECRET = b"correct horse"


@pytest.fixture
def up(tmp_path: Path) -> Upstream:
    made = Upstream(tmp_path)
    made.write("a", "1")
    made.commit()
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    return made


def hooked(up: Upstream, *urls: str, internal: bool = True) -> None:
    secret = str(up.tree.parent / "secret")
    up.configure(webhooks=tuple(config_tables.WebHook(url, secret, internal) for url in urls))
    if NAME in config.load(up.root).modules:
        config.remove_module(up.root, NAME)
    config.add_module(up.root, NAME, up.module)


@pytest.fixture
def gone() -> Iterator[Event]:
    """What a silent receiver waits for."""
    event = Event()
    yield event
    event.set()


def serials(heard: Receiver) -> list[int]:
    return [got.said["serial"] for got in heard.got]


def test_a_commit_is_told_and_signed(up: Upstream) -> None:
    with receiver() as heard, receiver() as other:
        hooked(up, f"{heard.url}/path?key=1", other.url)
        with serving(up.root):
            until(lambda: serials(heard) == [1] == serials(other))
            up.write("a", "22")
            head = up.commit().head
            until(lambda: serials(heard) == [1, 2] == serials(other))
    got = heard.got[-1]
    said = got.said
    assert abs(said.pop("sent") - time.time()) < 3600
    assert said.pop("delivery") == got.headers["x-huai-delivery"]
    assert said == {
        "event": "commit",
        "module": NAME,
        "serial": 2,
        "commit": head.commit,
        "tree": head.tree,
        "time": head.time,
    }
    proof = hmac.new(SECRET, got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-hub-signature-256"] == f"sha256={proof}"
    assert (got.path, got.headers["content-type"]) == ("/path?key=1", "application/json")


def test_what_may_pass_is_tried_again_and_a_newer_commit_comes_first(up: Upstream) -> None:
    with receiver(status(500), status(503), status(200)) as heard:
        hooked(up, heard.url)
        with serving(up.root):
            until(lambda: len(heard.got) == 3)
    assert {each.said["delivery"] for each in heard.got} == {heard.got[0].said["delivery"]}
    with receiver(status(500)) as broken:
        hooked(up, broken.url)
        with serving(up.root) as server:
            until(lambda: serials(broken) == [1])
            up.write("a", "22")
            up.commit()
            until(lambda: 2 in serials(broken))
            until(lambda: "was not told of serial 1: HTTP 500" in server.log.read_text())
            assert server.stop() == 0


def test_no_redirection_is_followed(up: Upstream) -> None:
    with receiver() as inner, receiver(status(302, Location=f"{inner.url}/x")) as heard:
        hooked(up, heard.url)
        with serving(up.root) as server:
            until(lambda: "was not told of serial 1: HTTP 302" in server.log.read_text())
        assert (len(heard.got), inner.got) == (1, [])


def test_an_address_of_this_network_has_to_be_allowed(up: Upstream) -> None:
    with receiver() as heard:
        port = heard.url.rpartition(":")[2]
        hooked(up, f"http://localhost:{port}/very/secret?token=1", internal=False)
        with serving(up.root) as server:
            until(lambda: "an address of this network" in server.log.read_text())
            log = server.log.read_text()
            assert "internal = true" in log
            assert "secret" not in log
            hooked(up, heard.url)  # the file is read again
            until(lambda: serials(heard) == [1])


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254", "100.64.0.1"]
)
def test_all_spellings_of_such_an_address_are_refused(up: Upstream, host: str) -> None:
    hook = WebHook(f"http://{host}:9/", str(up.tree.parent / "secret"), internal=False)
    with pytest.raises(DeliveryError, match="of this network") as refused:
        deliver(hook, {}, "1", lambda: False)
    assert not refused.value.may_pass


@pytest.mark.parametrize(("name", "said"), [("none", "No such file"), ("empty", "is empty")])
def test_without_a_secret_nothing_is_sent(up: Upstream, name: str, said: str) -> None:
    folder = up.tree.parent
    (folder / "empty").write_bytes(b"\n")
    with receiver() as heard, pytest.raises(DeliveryError, match=said):
        deliver(WebHook(heard.url, str(folder / name), internal=True), {}, "1", lambda: False)
    assert heard.got == []


def test_a_silent_receiver_delays_no_commit_and_no_stop(up: Upstream, gone: Event) -> None:
    def silent(_: BaseHTTPRequestHandler) -> None:
        gone.wait()

    with receiver(silent) as heard:
        hooked(up, heard.url)
        with serving(up.root) as server:
            until(lambda: len(heard.got) == 1)
            up.write("a", "22")
            assert up.commit().changed
            assert server.stop(signal.SIGTERM) == 0
        gone.set()


def test_an_answer_has_a_bound(up: Upstream) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    with receiver(endless) as heard:
        hook = WebHook(heard.url, str(up.tree.parent / "secret"), internal=True)
        with pytest.raises(DeliveryError):
            deliver(hook, {}, "1", lambda: False)


def test_a_log_names_no_path_and_no_login() -> None:
    assert shown("https://user:word@host:8443/services/T0/B0?key=1") == "https://host:8443"
