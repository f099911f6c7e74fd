"""A POST to a web hook."""

import json
import ssl
from pathlib import Path

import pytest

from huai_program.post import Hook, PostError, post
from tests.support.certificate import make_certificate
from tests.support.scripted_http import Reply, Request, scripted


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


def test_an_answer_has_a_bound() -> None:
    def endless(_: Request) -> Reply:
        return Reply(body=json.dumps("x" * (1 << 20)).encode())

    with scripted(endless) as server, pytest.raises(PostError):
        post(Hook(server.url, "huai-client", 30), {}, {})
