"""A login goes to scheme, host and port of the URL in client.toml, wherever a redirection leads."""

import binascii
from pathlib import Path

import pytest

from huai_client.metadata import http
from huai_client.metadata.http import MetadataUrl, UpstreamError, send
from huai_client.metadata.newest import find_newest
from huai_client.metadata.static_fetch import Files
from huai_client.run.options import NEVER
from huai_schema.codec.static_files import NOTHING, Static, StaticFile, Step
from tests.support.scripted_http import Reply, Request, Scripted, scripted

COMMIT = "1" * 40
HEAD = Static({1: COMMIT}, (Step(NOTHING, 1, StaticFile(1, bytes(32))),)).encode()


@pytest.fixture(autouse=True)
def netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One login for the host of both servers, whose ports differ, and one for all others."""
    path = tmp_path / "netrc"
    path.write_text("machine 127.0.0.1 login me password mine\ndefault login any password of-all\n")
    monkeypatch.setenv("NETRC", str(path))


def answer(_: Request) -> Reply:
    """An upstream that has a commit, and static files."""
    return Reply(body=HEAD)


def logins(server: Scripted) -> set[str]:
    return {each.headers.get("authorization", "none") for each in server.questions}


def basic(login: bytes) -> str:
    return f"Basic {binascii.b2a_base64(login, newline=False).decode()}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("login", ["", "you:yours@"])
def test_the_target_of_a_redirection_gets_none(host: str, login: str) -> None:
    """Neither the one of its host, nor the default, nor that of the URL; not for later requests."""
    with scripted(answer) as target:
        location = target.url.replace("127.0.0.1", host).replace("http://", "http://a:b@")

        def lead(request: Request) -> Reply:
            return Reply("302 Found", (f"Location: {location}{request.path}",))

        with scripted(lead) as first:
            url = MetadataUrl(f"{first.url.replace('//', f'//{login}')}/git/m.git")
            newest = find_newest(url)
            with send(newest.url, http.Request("objects")) as answered:
                answered.read_all(100)
            reader = Files(timeout=30, deadline=NEVER)
            with reader.get(newest.url, "static/packs/1") as answered:
                answered.read_all(100)
            with reader.get(url, "static/packs/2") as answered:
                answered.read_all(1 << 20)
            with reader.get(url, "static/packs/3") as answered:
                answered.read_all(1 << 20)
    assert newest.commit == COMMIT
    assert len(target.questions) == 5
    assert logins(target) == {"none"}
    assert logins(first) == {basic(b"you:yours" if login else b"me:mine")}


def test_a_redirection_on_the_same_server_keeps_it() -> None:
    def answered(request: Request) -> Reply:
        if request.path.startswith("/old"):
            return Reply("301 Moved", (f"Location: {request.path.replace('old', 'new')}",))
        if "authorization" not in request.headers and "objects" in request.path:
            return Reply("401 Unauthorized")
        return answer(request)

    with scripted(answered) as server:
        newest = find_newest(MetadataUrl(f"{server.url}/old/m.git"))
        assert str(newest.url) == f"{server.url}/new/m.git"
        with send(newest.url, http.Request("objects")) as response:
            assert response.read_all(10)


@pytest.mark.parametrize("text", ["machine 127.0.0.1 login me pasword SECRET", "\xff SECRET"])
def test_a_netrc_that_is_not_understood_is_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "netrc").write_text(f"{text}\n", encoding="latin-1")
    with pytest.raises(UpstreamError, match="cannot be parsed") as error:
        find_newest(MetadataUrl("http://127.0.0.1:1/m.git"))
    assert "SECRET" not in error.value.message
