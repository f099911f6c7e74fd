"""`/openapi.json` describes every address with the statuses and types of its answers."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from huai_server.http.api import ErrorModel, ModuleModel, ModulesModel
from huai_server.http.app import HealthModel
from huai_server.http.mirrors.answers import AllMirrorsModel, ModuleMirrorsModel
from huai_server.http.tree_api import CommitsModel, DifferencesModel, EntriesModel, SearchModel
from tests.integration.test_events import subscribed
from tests.support.committing import SECONDS, run_server
from tests.support.serving import Serving, serving

NAME = "m"
MODELS: dict[str, type[BaseModel]] = {
    each.__name__: each
    for each in (
        AllMirrorsModel,
        CommitsModel,
        DifferencesModel,
        EntriesModel,
        ErrorModel,
        HealthModel,
        ModuleMirrorsModel,
        ModuleModel,
        ModulesModel,
        SearchModel,
    )
}
ADVERT = f"/git/{NAME}.git/info/refs"
FETCH = f"/git/{NAME}.git/git-upload-pack"
HEAD = f"/git/{NAME}.git/static/head"
DIGEST = "0" * 64
REQUESTS: tuple[tuple[str, str, int, dict[str, str]], ...] = (
    ("GET", "/healthz", 200, {}),
    ("GET", "/metrics", 200, {}),
    ("GET", "/api/v1/modules", 200, {}),
    ("GET", "/api/v1/modules?token=x", 400, {}),
    ("POST", "/api/v1/modules", 405, {}),
    ("GET", f"/api/v1/modules/{NAME}", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}", 304, {"If-None-Match": "*"}),
    ("GET", "/api/v1/modules/unknown", 401, {}),
    ("GET", f"/api/v1/modules/{NAME}/commits", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/commits", 304, {"If-None-Match": "*"}),
    ("GET", f"/api/v1/modules/{NAME}/tree/1", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/tree/1", 304, {"If-None-Match": "*"}),
    ("GET", f"/api/v1/modules/{NAME}/tree/1/file", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/tree/1/none", 404, {}),
    ("GET", "/api/v1/search?q=file", 200, {}),
    ("GET", "/api/v1/search", 304, {"If-None-Match": "*"}),
    ("GET", f"/api/v1/modules/{NAME}/diff/1..1", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/diff/1..9", 404, {}),
    ("GET", f"/api/v1/modules/{NAME}/metalink/file", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/metalink/none", 404, {}),
    ("POST", f"/api/v1/modules/{NAME}/attestations", 400, {}),
    ("DELETE", f"/api/v1/modules/{NAME}/attestations", 405, {}),
    ("GET", "/api/v1/mirrors", 200, {}),
    ("GET", "/api/v1/mirrors", 304, {"If-None-Match": "*"}),
    ("GET", f"/api/v1/modules/{NAME}/mirrors", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/mirrors", 304, {"If-None-Match": "*"}),
    ("GET", f"/api/v1/modules/{NAME}/mirrorlist", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/mirmon", 200, {}),
    ("GET", f"/api/v1/modules/{NAME}/mirmon", 304, {"If-None-Match": "*"}),
    ("GET", "/api/v1/mirrors/unknown/mirrorz.json", 404, {}),
    ("GET", "/api/v1/mirrors/unknown/tunasync.json", 404, {}),
    ("GET", f"/content/{NAME}/file", 200, {}),
    ("GET", f"/content/{NAME}/file", 206, {"Range": "bytes=0-1"}),
    ("GET", f"/content/{NAME}/file", 304, {"If-None-Match": "*"}),
    ("GET", f"/content/{NAME}/file", 412, {"If-Match": '"x"'}),
    ("GET", f"/content/{NAME}/file", 416, {"Range": "bytes=99-"}),
    ("GET", f"/content/{NAME}/none", 404, {}),
    ("POST", f"/content/{NAME}/file", 405, {}),
    ("POST", "/api/v1/events", 405, {}),
    ("GET", f"/api/v1/events?module={'x' * 9000}", 414, {}),
    ("GET", f"{ADVERT}?service=git-upload-pack", 200, {}),
    ("GET", f"{ADVERT}?service=git-receive-pack", 403, {}),
    ("POST", ADVERT, 405, {}),
    ("GET", "/git/unknown.git/info/refs?service=git-upload-pack", 401, {}),
    ("POST", FETCH, 415, {}),
    ("POST", FETCH, 400, {"Content-Type": "application/x-git-upload-pack-request"}),
    ("GET", FETCH, 405, {}),
    ("GET", HEAD, 200, {}),
    ("GET", HEAD, 304, {"If-None-Match": "*"}),
    ("GET", f"/git/{NAME}.git/static/packs/{DIGEST}.pack", 404, {}),
    ("GET", f"/git/{NAME}.git/static/lists/{DIGEST}", 404, {}),
    ("GET", f"/git/{NAME}.git/blocks/00/{DIGEST}", 404, {}),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A module of everything, and a private one."""
    folder = tmp_path_factory.mktemp("upstream")
    root = folder / "state"
    for name in ("tree", "www"):
        (folder / name).mkdir()
    (folder / "tree/file").write_text("content")
    run_server(root, "add", "private", str(folder / "tree"), "--private")
    url = ("--content-url", "https://mirror.example/m")
    run_server(root, "add", NAME, str(folder / "tree"), "--serve-content", *url)
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'[static]\nto = ["{folder / "www"}"]\n{text}')
    assert run_server(root, "commit", NAME).returncode == 0
    with serving(root) as server:
        yield server


@pytest.fixture(scope="module")
def described(server: Serving) -> dict[str, Any]:
    description = httpx.get(server.url + "/openapi.json").json()
    assert isinstance(description, dict)
    return description


def operation_of(described: dict[str, Any], method: str, url: str) -> tuple[str, dict[str, Any]]:
    """Path and description of what a request asks for; of any method, if it has not this one."""
    path = url.partition("?")[0]
    for pattern, methods in described["paths"].items():
        if re.fullmatch(
            re.sub(r"\{path\}", ".*", re.sub(r"\{(?!path)\w+\}", "[^/]+", pattern)), path
        ):
            return pattern, methods.get(method.lower()) or next(iter(methods.values()))
    raise AssertionError(url)


def test_an_answer_is_one_that_is_described(
    server: Serving, described: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for method, url, status, headers in REQUESTS:
        with subtests.test(method=method, url=url, status=status):
            answer = httpx.request(method, server.url + url, headers=headers, timeout=SECONDS)
            _, operation = operation_of(described, method, url)
            assert answer.status_code == status, answer.text
            assert (status == 405) == ("allow" in answer.headers)
            content = operation["responses"][str(status)].get("content", {})
            kind = answer.headers.get("content-type", "").partition(";")[0]
            assert kind in content or (not content and not answer.content)
            reference = content.get(kind, {}).get("schema", {}).get("$ref", "")
            if reference:
                MODELS[reference.rpartition("/")[2]].model_validate(answer.json())
            links = re.findall(r"https?://(?!127\.|mirror\.example|[\w.]*w3\.org)", answer.text)
            assert not links


def test_every_address_that_is_described_is_asked_for(described: dict[str, Any]) -> None:
    requested = {operation_of(described, method, url)[0] for method, url, _, _ in REQUESTS}
    assert described["paths"].keys() == requested
    assert {each for methods in described["paths"].values() for each in methods} == {"get", "post"}
    operations = [each for methods in described["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len({*names}) == len(names)


def test_other_sites_may_read_what_everybody_may(server: Serving) -> None:
    origin = {"Origin": "https://other.example"}
    for path in ("/api/v1/modules", f"/api/v1/modules/{NAME}", "/openapi.json"):
        answer = httpx.get(server.url + path, headers=origin)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    with subscribed(server.url, headers=origin) as events:
        assert events.answer.headers["access-control-allow-origin"] == "*"
    root = server.log.parent / "state"
    created = run_server(root, "token", "new", "private")
    authorized = {**origin, "Authorization": f"Bearer {created.stdout.strip()}"}
    preflight = {**origin, "Access-Control-Request-Headers": "authorization"}
    preflight |= {"Access-Control-Request-Method": "GET"}
    for path in ("/api/v1/modules", "/api/v1/modules/private", "/api/v1/events"):
        with httpx.stream("GET", server.url + path, headers=authorized) as answer:
            assert answer.status_code == 200
            assert not [name for name in answer.headers if name.startswith("access-control")]
        leave = httpx.options(server.url + path, headers=preflight)
        assert leave.status_code == 405
        assert not [name for name in leave.headers if name.startswith("access-control")]
    for path in ("/", "/metrics", f"/content/{NAME}/file"):
        answer = httpx.get(server.url + path, headers=origin)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_what_is_described_and_pages_are_compressed(server: Serving) -> None:
    for url, coding in (
        ("/openapi.json", "gzip"),
        (f"/modules/{NAME}", "gzip"),
        ("/healthz", None),
        (f"{ADVERT}?service=git-upload-pack", None),
        (HEAD, None),
        (f"/content/{NAME}/file", None),
    ):
        answer = httpx.get(server.url + url, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert answer.headers.get("Content-Encoding") == coding, url
