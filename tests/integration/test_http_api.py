"""The JSON API of a running server, and the addresses it can listen on."""

import re
import socket

import httpx
import pytest

from huai_program.configuration import ConfigError
from huai_server.config.tables import Listen
from huai_server.http.server import listen
from tests.support.http_fixtures import Repository, Server, git


def test_a_module_is_described_by_its_newest_commit(
    repository: Repository, client: httpx.Client
) -> None:
    for serial in (1, 2):
        answer = client.get("/api/v1/modules/m").json()
        assert answer.pop("age") > 0
        assert answer == {
            "name": "m",
            "git": "/git/m.git",
            "commit": repository.head(),
            "tree": git("-C", repository.path, "rev-parse", "main^{tree}"),
            "serial": serial,
            "totals": {
                "files": serial,
                "directories": 1,
                "symlinks": 0,
                "bytes": 5,
                "entries": serial + 1,
            },
            "skipped": 3,
            "damaged": 0,
            "committed": 1_700_000_000 + serial,
            "problem": None,
        }
        repository.commit(b"more")


def test_not_modified_until_there_is_a_commit(repository: Repository, client: httpx.Client) -> None:
    etag = client.get("/api/v1/modules/m").headers["etag"]
    for tag in (etag, f'"x", {etag}', etag.removeprefix("W/"), "*"):
        answer = client.get("/api/v1/modules/m", headers={"If-None-Match": tag})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
    repository.commit(b"more")
    answer = client.get("/api/v1/modules/m", headers={"If-None-Match": etag})
    assert (answer.status_code, answer.json()["serial"]) == (200, 2)


def test_modules_appear_and_vanish_while_it_runs(
    repository: Repository, client: httpx.Client
) -> None:
    other = Repository.create(repository.path.parent, "a")
    modules = client.get("/api/v1/modules").json()["modules"]
    assert [module["name"] for module in modules] == ["a", "m"]
    assert modules[0]["commit"] is None
    assert modules[0]["totals"] is None
    assert client.get("/api/v1/modules/a").json()["serial"] is None
    assert client.get("/healthz").json() == {"status": "ok", "modules": 2}
    other.commit(b"first")
    assert client.get("/api/v1/modules/a").json()["serial"] == 1
    other.path.rename(other.path.with_suffix(".gone"))
    assert client.get("/api/v1/modules/a").status_code == 404
    assert client.get("/healthz").json() == {"status": "ok", "modules": 1}


def test_one_bad_commit_hides_no_other_module(repository: Repository, client: httpx.Client) -> None:
    bad = Repository.create(repository.path.parent, "bad")
    tree = git("-C", bad.path, "mktree")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    commit = git("-C", bad.path, *identity, "commit-tree", tree, "-m", "no trailers")
    git("-C", bad.path, "update-ref", "refs/heads/main", commit)
    broken, good = client.get("/api/v1/modules").json()["modules"]
    assert "log" in broken["problem"]
    assert good["serial"] == 1
    answer = client.get("/api/v1/modules/bad")
    assert answer.status_code == 500
    assert set(answer.json()) == {"error", "hint"}


def test_no_answer_names_a_path_of_the_machine(
    repository: Repository, client: httpx.Client
) -> None:
    (repository.path / "HEAD").unlink()
    for path in ("/api/v1/modules", "/api/v1/modules/m", "/"):
        answer = client.get(path)
        assert str(repository.path.parent) not in answer.text
    assert client.get("/api/v1/modules").json()["modules"][0]["problem"]


def test_errors_are_json(client: httpx.Client, subtests: pytest.Subtests) -> None:
    for method, path, status in [
        ("GET", "/api/v1/modules/nope", 404),
        ("GET", "/api/v1/modules/..%2f..", 404),
        ("GET", "/api/v2", 404),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("GET", "/api/docs", 404),
        ("GET", "/healthz/more", 404),
        ("POST", "/api/v1/modules", 405),
    ]:
        with subtests.test(method=method, path=path):
            answer = client.request(method, path)
            assert answer.status_code == status
            assert set(answer.json()) == {"error", "hint"}
            assert all(answer.json().values())


def test_head_is_get_without_its_body(client: httpx.Client, subtests: pytest.Subtests) -> None:
    for path in ("/", "/healthz", "/api/v1/modules", "/api/v1/modules/m"):
        with subtests.test(path):
            head, get = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == get.headers["content-length"]
    for path in ("/healthz", "/git/m.git/info/refs?service=git-upload-pack"):
        assert re.fullmatch(r"huai/[0-9.]+", client.get(path).headers["server"])


def test_one_connection_carries_many_requests(server: Server) -> None:
    with server.connect() as connection:
        for _ in range(3):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200")


def test_an_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            listen(Listen(port=port))
