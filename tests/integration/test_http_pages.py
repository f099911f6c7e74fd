"""The pages of a running server: what they say, in whose language, and what they never do."""

from collections.abc import Iterator
from urllib.parse import urljoin

import httpx
import pytest

from tests.support.html import Element, parse
from tests.support.http_fixtures import Repository, Server

LIGHT = 50_000
"""Bytes of a first view, with all that it loads."""


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as made:
        yield made


def page(client: httpx.Client, path: str, status: int = 200, *, language: str = "en") -> Element:
    answer = client.get(path, headers={"Accept-Language": language})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return parse(answer.text)


def rows(found: Element) -> list[list[str]]:
    """The text of each row of the table's body."""
    body = found.one("tbody")
    return [[cell.text for cell in row.all("th", "td")] for row in body.all("tr")]


def break_head(repository: Repository) -> None:
    """As a repository is of which a part was lost."""
    (repository.path / "HEAD").unlink()


def test_the_front_page_tells_how_each_module_stands(
    repository: Repository, client: httpx.Client
) -> None:
    Repository.create(repository.path.parent, "empty")
    broken = Repository.create(repository.path.parent, "broken")
    broken.commit(b"lost")
    break_head(broken)
    repository.commit(b"more")
    found = rows(page(client, "/"))
    assert [row[0] for row in found] == ["broken", "empty", "m"]
    assert found[0][1] == "its metadata cannot be read; the server's log says why"
    assert found[1][1] == "no commit yet"
    assert found[2][2:5] == ["2", "3", "5 B"]
    assert found[2][5] == "+1 added"
    assert len(page(client, "/").one("polyline")["points"].split()) == 2


def test_the_page_of_a_module_lists_its_commits(
    repository: Repository, client: httpx.Client
) -> None:
    for _ in range(2):
        repository.commit(b"more")
    found = page(client, "/modules/m")
    assert found.one("h1").text == "m"
    assert [row[0] for row in rows(found)] == ["3", "2", "1"]
    assert rows(found)[0][5] == repository.head()[:12]


def test_a_commit_that_is_late_is_overdue(repository: Repository, client: httpx.Client) -> None:
    """The commits of this repository are of the year 2023, and seconds apart."""
    for _ in range(4):
        repository.commit(b"more")
    for path in ("/", "/modules/m"):
        times = page(client, path).all("time")
        (due,) = (each for each in times if each.attributes.get("class") == "due bad")
        assert due.text.startswith("overdue by ")


def test_many_commits_are_on_several_pages(repository: Repository, client: httpx.Client) -> None:
    for _ in range(104):
        repository.commit(b"")
    first = page(client, "/modules/m")
    (older,) = (link for link in first.all("a") if link.attributes.get("rel") == "next")
    second = page(client, urljoin("/modules/m", older["href"]))
    serials = [int(row[0]) for row in rows(first) + rows(second)]
    assert serials == list(range(105, 0, -1))
    assert [link for link in second.all("a") if link.attributes.get("rel") == "next"] == []


def test_a_damaged_module_has_a_page_that_says_so(
    repository: Repository, client: httpx.Client
) -> None:
    break_head(repository)
    for path in ("/modules/m", "/modules/m?before=1", "/modules/m?before=x"):
        found = page(client, path)
        assert "cannot be read" in found.one("main").text
        assert str(repository.path.parent) not in found.text


@pytest.mark.parametrize("path", ["/modules/nope", "/modules/%3Cscript%3E", "/modules/a%0Ab"])
def test_what_is_not_there_has_a_page_too(client: httpx.Client, path: str) -> None:
    found = page(client, path, 404)
    assert found.one("h1").text == "no such module"
    assert len(found.all("script")) == 1


@pytest.mark.parametrize("path", ["/nothing", "/docs", "/api/v1/nothing", "/content/nope/x"])
def test_an_unknown_address_is_a_page_for_people(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == 404
    assert "Accept" in answer.headers.get_list("vary", split_commas=True)
    error = parse(answer.text)
    assert "404" in error.one("main").text
    assert urljoin(path, error.one("main").all("a")[0]["href"]) == "/"
    assert client.get(path).json().keys() == {"error", "hint"}


def test_an_error_leads_back_to_its_module(client: httpx.Client) -> None:
    path = "/modules/m/tree/999/d"
    links = page(client, path, 404).one("main").all("a")
    assert [urljoin(path, link["href"]) for link in links] == ["/", "/modules/m"]


def test_names_are_text_and_nothing_else(repository: Repository, client: httpx.Client) -> None:
    name = "<b onclick='x'>&\""
    repository.path.rename(repository.path.parent / f"{name}.git")
    front = page(client, "/")
    assert front.all("b") == []
    (link,) = front.one("tbody").all("a")
    there = page(client, urljoin("/", link["href"]))
    assert there.one("h1").text == link.text == name


@pytest.mark.parametrize("path", ["/", "/modules/m", "/modules/nope"])
def test_each_page_can_be_used_by_everybody(client: httpx.Client, path: str) -> None:
    for language in ("en", "zh"):
        found = parse(client.get(path, params={"lang": language}).text)
        assert found.one("html")["lang"] == language
        assert found.one("title").text
        assert len(found.all("main")) == len(found.all("h1")) == len(found.all("footer")) == 1
        assert all(nav.attributes.get("aria-label") for nav in found.all("nav"))
        assert all(head["scope"] in {"col", "row"} for head in found.all("th"))
        assert all(table.one("caption").text for table in found.all("table"))
        assert all(picture["aria-label"] for picture in found.all("svg"))
        skip = found.one("body").children[0]
        assert skip["href"] == f"#{found.one('main')['id']}"
        ids = [each["id"] for each in found.all() if "id" in each.attributes]
        assert len(ids) == len(set(ids))


def test_no_page_does_anything_by_itself(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "://" not in policy
    found = parse(answer.text)
    assert found.all("style") == []
    assert all(script.text == "" for script in found.all("script"))
    for each in found.all():
        assert not [name for name in each.attributes if name == "style" or name.startswith("on")]
    addresses = [each.attributes.get(name, "") for each in found.all() for name in ("href", "src")]
    assert [each for each in addresses if ":" in each or each.startswith("/")] == []


def test_a_first_view_is_light(client: httpx.Client) -> None:
    answer = client.get("/")
    loaded = [
        each.attributes.get("href", each.attributes.get("src", ""))
        for each in parse(answer.text).all("link", "script")
    ]
    parts = [client.get(urljoin("/", address)) for address in loaded]
    assert [part.status_code for part in parts] == [200] * 3
    assert all("immutable" in part.headers["cache-control"] for part in parts)
    assert len(answer.content) + sum(len(part.content) for part in parts) < LIGHT
    assert client.get("/pages/other.css").status_code == 404


def test_whoever_has_a_page_is_told_so(repository: Repository, client: httpx.Client) -> None:
    etag = client.get("/").headers["etag"]
    known = {"If-None-Match": etag}
    again = client.get("/", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["vary"] == "Accept-Language"
    repository.commit(b"more")
    assert client.get("/", headers=known).status_code == 200


def test_the_language_is_the_browsers_or_what_was_clicked(client: httpx.Client) -> None:
    chinese = "zh-CN,zh;q=0.9"
    assert page(client, "/", language=chinese).one("h1").text == "模块"
    found = page(client, "/?lang=en", language=chinese)
    assert found.one("h1").text == "Modules"
    (link,) = found.one("tbody").all("a")
    assert page(client, link["href"], language=chinese).one("html")["lang"] == "en"
    assert page(client, "/?lang=xx").one("html")["lang"] == "en"
