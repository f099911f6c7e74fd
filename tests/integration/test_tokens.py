"""Private modules of a running server: who sees them, and where a token never stands."""

import base64
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from huai_program.notify.notifier import Streak, save
from huai_server.state.paths import module_places
from tests.integration.test_events import subscribed
from tests.support.certificate import make_certificate
from tests.support.committing import ENVIRONMENT, SECONDS, git, run_server
from tests.support.html import parse
from tests.support.nginx import nginx
from tests.support.prepared import CLIENT, ran
from tests.support.processes import run_program
from tests.support.serving import Serving, serving

HIDDEN = "secret"
UNKNOWN = "absent"
PLACES = (
    "/git/{}.git/info/refs?service=git-upload-pack",
    "/git/{}.git/static/head",
    "/git/{}.git/blocks/ab/ab" + "0" * 62,
    "/content/{}/file",
    "/api/v1/modules/{}",
    "/api/v1/modules/{}/metalink/file",
    "/api/v1/modules/{}/mirrors",
    "/api/v1/modules/{}/mirrorlist",
    "/api/v1/modules/{}/mirmon",
    "/modules/{}",
    "/modules/{}/tree/1",
    "/modules/{}/tree/1/?q=file",
    "/modules/{}/diff/1..1",
)
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
LISTS = ("/api/v1/modules", "/api/v1/mirrors", "/", "/metrics")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public module, and a private one."""
    folder = tmp_path_factory.mktemp("upstream")
    for name in ("open", HIDDEN):
        (folder / name).mkdir()
        (folder / name / "file").write_text(f"content of {name}")
    root = folder / "state"
    private = ("add", HIDDEN, str(folder / HIDDEN), "--serve-content", "--private")
    run_server(root, "add", "open", str(folder / "open"), "--serve-content")
    run_server(root, *private, "--content-url", "https://mirror.example/secret")
    (folder / "www").mkdir()
    text = (root / "server.toml").read_text()
    head = f'[listen]\naccess_log = true\n[static]\nto = ["{folder / "www"}"]\n'
    own = f'[modules.{HIDDEN}.static]\nto = ["{folder / "www"}"]\n'
    (root / "server.toml").write_text(f"{head}{text}\n{own}")
    for name in ("open", HIDDEN):
        assert run_server(root, "commit", name).returncode == 0
    return root


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Serving]:
    with serving(root) as server:
        yield server


def make(root: Path, *arguments: str) -> tuple[str, str]:
    """A new token and its id."""
    done = run_server(root, "token", "new", *(arguments or (HIDDEN,)), "--json")
    token = json.loads(done.stdout)
    return token["token"], token["id"]


@pytest.fixture(scope="module")
def token(root: Path) -> str:
    return make(root)[0]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(token: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"anybody:{token}".encode()).decode()}


def read_response(response: httpx.Response) -> tuple[int, str, dict[str, str]]:
    """Return all of a response but its time."""
    return response.status_code, response.text, dict(response.headers) | {"date": ""}


def test_without_a_right_to_it_there_is_no_such_module(
    server: Serving, root: Path, token: str
) -> None:
    other, _ = make(root, "open")
    for place in PLACES:
        for headers, status in (({}, 401), (BROWSER, 401), (bearer(other), 404)):
            answers = []
            for name in (HIDDEN, UNKNOWN):
                answer = httpx.get(server.url + place.format(name), headers=headers)
                status_code, text, more = read_response(answer)
                assert status_code == status
                if status == 401:
                    scheme = "Bearer" if headers is BROWSER else "Basic"
                    assert more["www-authenticate"].partition(" ")[0] == scheme
                answers.append(
                    (text.replace(name, "NAME"), more | {"content-length": "", "etag": ""})
                )
            assert answers[0] == answers[1]
        for headers in (bearer(token), basic(token)):
            answer = httpx.get(server.url + place.format(HIDDEN), headers=headers)
            assert answer.status_code == (404 if "/blocks/" in place else 200), answer.text
            if answer.status_code == 200:
                assert "private" in answer.headers["cache-control"]
                assert "public" not in answer.headers["cache-control"]
                assert "Authorization" in answer.headers.get_list("vary", split_commas=True)


def test_a_browser_asks_for_a_login_only_where_its_user_wants_one(
    server: Serving, token: str
) -> None:
    address = f"{server.url}/modules/{HIDDEN}/tree/1/a%20b"
    page = parse(httpx.get(address, headers=BROWSER).text)
    (login,) = (link for link in page.all("a") if link.text == "Log in with a token")
    login_url = urljoin(address, login["href"])
    unauthorized = httpx.get(login_url, headers=BROWSER)
    assert unauthorized.status_code == 401
    assert unauthorized.headers["www-authenticate"].startswith("Basic ")
    assert unauthorized.headers["content-type"].startswith("text/html")
    back = httpx.get(login_url, headers=BROWSER | basic(token))
    assert back.status_code == 303
    assert urljoin(login_url, back.headers["location"]) == address


def test_only_an_operator_sees_the_operators_page(server: Serving, root: Path, token: str) -> None:
    address = f"{server.url}/operator"
    for headers in ({}, bearer(token), bearer(make(root, HIDDEN, "--scope", "metrics")[0])):
        answer = httpx.get(address, headers=BROWSER | headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert parse(answer.text).one("h1").text == "this page needs a token of an operator"
    notified = module_places(root, HIDDEN).notified("commit")
    save(notified, Streak(4, 1_700_000_000, running=True))
    half, _ = make(root, "open", "--scope", "operator")
    full, name = make(root, HIDDEN, "--scope", "operator", "--expires", "90d", "--comment", "<me>")
    text = parse(httpx.get(address, headers=basic(full)).text).one("main").text
    notified.unlink()
    for word in (HIDDEN, "open", name, "<me>", "commit 3 times since 2023-11-14", "1 (", "Free"):
        assert word in text
    text = httpx.get(address, headers=bearer(half)).text
    assert "open" in text
    assert HIDDEN not in text
    assert name not in text


def test_an_operator_sees_slow_requests_without_queries_and_hidden_modules(
    server: Serving, root: Path, token: str
) -> None:
    wrong = bearer(token[:-1] + ("a" if token[-1] != "a" else "b"))
    # One of a module that is not served now may have been private.
    hidden = (f"/modules/{HIDDEN}", f"/git/{HIDDEN}.git/info/refs", f"/git/{UNKNOWN}.git/info/refs")
    for place in (*hidden, "/modules/open/tree/1"):
        assert httpx.get(f"{server.url}{place}?q=what", headers=wrong).status_code == 401
    rows = {}
    for name in ("open", HIDDEN):
        operator, _ = make(root, name, "--scope", "operator")
        page = parse(httpx.get(f"{server.url}/operator", headers=bearer(operator)).text)
        rows[name] = [row.text for row in page.all("tr") if "GET" in row.text]
    assert not any(HIDDEN in row for row in rows["open"])
    assert not any(UNKNOWN in row for row in rows["open"] + rows[HIDDEN])
    assert sum(f"/{HIDDEN}" in row for row in rows[HIDDEN]) >= 2
    row = next(row for row in rows["open"] if "/modules/open/tree/1" in row)
    assert " s 401 " in row
    assert "what" not in " ".join(rows[HIDDEN])


def test_a_login_leads_to_no_other_server(server: Serving, token: str) -> None:
    for to in ("//evil.example/", "https://evil.example/", "\\\\evil.example", "/"):
        answer = httpx.get(f"{server.url}/login", params={"to": to}, headers=basic(token))
        assert answer.status_code == 303
        assert urljoin(server.url + "/login", answer.headers["location"]).startswith(
            server.url + "/"
        )


def test_an_attestation_finds_out_nothing(server: Serving) -> None:
    for text in (b"", b"x", b"x" * 9000):
        answers = []
        for name in (HIDDEN, UNKNOWN):
            url = f"{server.url}/api/v1/modules/{name}/attestations"
            answer = httpx.post(url, content=text)
            assert answer.status_code == 401
            answers.append(read_response(answer))
        assert answers[0] == answers[1]


def test_files_that_no_token_guards_are_warned_of(root: Path, tmp_path: Path) -> None:
    for name, warns in (("open", False), (HIDDEN, True)):
        done = run_server(root, "publish", name, "--to", str(tmp_path))
        assert done.returncode == 0
        assert ("no token protects these files" in done.stderr) == warns


def test_lists_name_it_to_a_client_that_may_see_it(server: Serving, root: Path, token: str) -> None:
    for place in LISTS:
        right = token if place != "/metrics" else make(root, HIDDEN, "--scope", "metrics")[0]
        for headers, visible in (({}, False), (bearer(right), True), ({}, False)):
            answer = httpx.get(server.url + place, headers=headers)
            assert answer.status_code == 200
            assert "open" in answer.text
            assert (HIDDEN in answer.text) == visible
        wrong = make(root, HIDDEN, "--scope", "metrics")[0] if place != "/metrics" else token
        assert HIDDEN not in httpx.get(server.url + place, headers=bearer(wrong)).text


def test_git_clones_with_a_header_and_with_a_login(
    server: Serving, root: Path, token: str, tmp_path: Path
) -> None:
    helper = tmp_path / "helper"
    helper.write_text(f"#!/bin/sh\necho username=anybody\necho password={token}\n")
    helper.chmod(0o700)
    options = (f"http.extraHeader=Authorization: Bearer {token}", f"credential.helper={helper}")
    url = f"{server.url}/git/{HIDDEN}.git"
    for number, option in enumerate(options):
        place = tmp_path / str(number)
        command = ["git", "-c", option, "clone", "-q", "--bare", url, str(place)]
        run_program(*command, env=ENVIRONMENT, check=True)
        newest = git(root / "modules" / HIDDEN / "repository.git", "rev-parse", "main")
        assert git(place, "rev-parse", "main") == newest
    environment = {**ENVIRONMENT, "GIT_TERMINAL_PROMPT": "0"}
    done = run_program("git", "clone", "-q", "--bare", url, tmp_path / "none", env=environment)
    assert done.returncode == 128


def test_a_downstream_syncs_with_its_netrc(
    server: Serving, root: Path, token: str, tmp_path: Path
) -> None:
    def client(*arguments: str, code: int = 0) -> str:
        place = ["--root", str(tmp_path / "client"), *arguments]
        done = ran(CLIENT, place, environment, SECONDS)
        assert done.returncode == code, done
        assert token not in done.stdout + done.stderr
        return done.stderr

    netrc = tmp_path / "netrc"
    environment = {**ENVIRONMENT, "NETRC": str(netrc)}
    netrc.write_text(f"machine 127.0.0.1 login huai password {token}\n")
    content = f"{server.url}/content/{HIDDEN}"
    client("add", HIDDEN, server.url, str(tmp_path / "copy"), "--content-url", content)
    (tmp_path / "copy").mkdir()
    client("sync", HIDDEN)
    assert (tmp_path / "copy/file").read_text() == f"content of {HIDDEN}"
    expired, name = make(root)
    run_server(root, "token", "revoke", name)
    netrc.write_text(f"machine 127.0.0.1 login huai password {expired}\n")
    assert "netrc" in client("sync", HIDDEN, code=10)
    netrc.unlink()
    client("sync", HIDDEN, code=10)
    assert token not in "".join(
        each.read_text(errors="replace")
        for each in (tmp_path / "client").rglob("*")
        if each.is_file()
    )


def test_events_name_it_until_the_token_is_revoked(server: Serving, root: Path) -> None:
    def commit(name: str) -> None:
        with (root.parent / name / "file").open("a") as file:
            file.write("more")
        assert run_server(root, "commit", name).returncode == 0

    text, name = make(root)
    with subscribed(server.url) as public, subscribed(server.url, headers=basic(text)) as private:
        assert public.next()["module"] == "open"
        assert {private.next()["module"], private.next()["module"]} == {"open", HIDDEN}
        commit(HIDDEN)
        assert private.next()["module"] == HIDDEN
        run_server(root, "token", "revoke", name)
        commit(HIDDEN)
        commit("open")
        assert public.next()["module"] == private.next()["module"] == "open"
        # No gap of one tells how many others there were.
        assert public.last == private.last
        assert int(public.last.partition("-")[2]) > 1000


def test_a_token_that_is_not_valid_is_refused_and_tried_slowly(server: Serving, root: Path) -> None:
    text, name = make(root, "open", HIDDEN)
    assert httpx.get(server.url + "/api/v1/modules", headers=bearer(text)).status_code == 200
    run_server(root, "token", "revoke", name)

    def ask(number: int) -> httpx.Response:
        place = ("/api/v1/modules/open", "/git/open.git/info/refs?service=git-upload-pack")
        headers = {**bearer(text), "X-Forwarded-For": "192.0.2.1"}
        return httpx.get(server.url + place[number % 2], headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert {answer.status_code for answer in answers} == {401, 503}
    assert sum(answer.status_code == 401 for answer in answers) == 4
    refused = next(answer for answer in answers if answer.status_code == 401)
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert all(text[18:] not in str(read_response(answer)) for answer in answers)
    foreign = httpx.get(server.url + "/api/v1/modules", auth=("user", "of another server"))
    assert foreign.status_code == 200


def test_a_token_in_an_address_is_refused_and_not_logged(server: Serving, token: str) -> None:
    keys = ("token", "access_token", "anything")
    for key in keys:
        for place in ("/api/v1/modules", "/git/secret.git/info/refs", "/modules/secret"):
            answer = httpx.get(f"{server.url}{place}?{key}={token}")
            assert answer.status_code == 400, (key, place)
            assert "Authorization: Bearer" in answer.text
            assert token not in answer.text
    server.wait_until(lambda: all(f"{key}=***" in server.log.read_text() for key in keys))
    encoded = httpx.get(f"{server.url}/api/v1/modules?a=%68{token[1:]}")
    assert encoded.status_code == 400
    server.wait_until(lambda: "?***" in server.log.read_text())
    assert token[18:] not in server.log.read_text()


def test_a_malformed_login_is_passed_over(server: Serving) -> None:
    for login in (b"Basic \xff\xff", b"\xff", b"Basic ===="):
        answer = httpx.get(f"{server.url}/api/v1/modules", headers=[(b"authorization", login)])
        assert answer.status_code < 500, login


def test_no_output_has_a_token(server: Serving, root: Path, token: str) -> None:
    make(root, HIDDEN, "--comment", "mirror1.example")
    outputs = [
        run_server(root, *arguments)
        for arguments in (("token", "list"), ("token", "list", "--json"), ("status",), ("check",))
    ]
    assert token[5:17] in outputs[0].stdout
    assert "mirror1.example" in outputs[0].stdout
    texts = [each.stdout + each.stderr for each in outputs]
    texts += [file.read_text(errors="replace") for file in root.rglob("*") if file.is_file()]
    texts += [httpx.get(server.url + place, headers=bearer(token)).text for place in LISTS]
    assert not [text for text in texts if token[18:] in text]
    assert token[18:] not in server.log.read_text()


def test_what_becomes_private_is_hidden_at_once(server: Serving, root: Path) -> None:
    config = root / "server.toml"
    before = config.read_text()
    assert httpx.get(server.url + "/api/v1/modules/open").status_code == 200
    config.write_text(before.replace("[modules.open]", '[modules.open]\naccess = "private"'))
    assert httpx.get(server.url + "/api/v1/modules/open").status_code == 401
    assert httpx.get(server.url + "/api/v1/modules").json() == {"modules": []}
    assert httpx.get(server.url + "/healthz").json()["modules"] == 0
    config.write_text(before)
    assert httpx.get(server.url + "/api/v1/modules/open").status_code == 200


def test_behind_nginx_with_tls_tokens_open_it_and_events_come(
    server: Serving, root: Path, token: str, tmp_path: Path
) -> None:
    """As docs/SERVE.md has it, in the part that matters here."""
    files = make_certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=files[0])
    forwarded = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering off"
    location = f'proxy_pass {server.url}; proxy_set_header Connection ""; {forwarded};'
    with nginx(tmp_path, tls=files, location=location) as proxy:
        place = f"{proxy.url}/api/v1/modules/{HIDDEN}"
        assert httpx.get(place, verify=trusted).status_code == 401
        assert httpx.get(place, verify=trusted, headers=basic(token)).status_code == 200
        option = f"http.extraHeader=Authorization: Bearer {token}"
        command = ["git", "-c", option, "-c", f"http.sslCAInfo={files[0]}", "clone", "-q", "--bare"]
        url = f"{proxy.url}/git/{HIDDEN}.git"
        run_program(*command, url, tmp_path / "c", env=ENVIRONMENT, check=True)
        with subscribed(proxy.url, HIDDEN, headers=bearer(token), verify=trusted) as events:
            serial = events.next()["serial"]
            (root.parent / HIDDEN / "another").touch()
            assert run_server(root, "commit", HIDDEN).returncode == 0
            assert events.next()["serial"] == serial + 1
