"""The pages of a running server: their text, their language, and what they never do."""

import asyncio
import gzip
import time
import tomllib
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import httpx
import pytest

from huai_program.tables import convert
from huai_server.config.tables import Listen
from huai_server.http.app import Application
from huai_server.http.pages import browse
from tests.support.committing import run_server
from tests.support.html import Element, parse
from tests.support.http_fixtures import Repository
from tests.support.http_server import Folder
from tests.support.serving import serving
from tests.support.upstream import Site, Upstream

PLAIN, COMPRESSED = 60_000, 15_000
"""Bytes of a first view, with all that it loads."""


def get(client: httpx.Client, path: str, status: int = 200, *, language: str = "en") -> Element:
    answer = client.get(path, headers={"Accept-Language": language})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return parse(answer.text)


def rows(page: Element) -> list[list[str]]:
    """Return the text of each cell of the table's body, by row."""
    body = page.one("tbody")
    return [[cell.text for cell in row.all("th", "td")] for row in body.all("tr")]


def break_head(repository: Repository) -> None:
    """Damage a repository as if a part of it was lost."""
    (repository.path / "HEAD").unlink()


def test_the_front_page_shows_the_state_of_each_module(
    repository: Repository, client: httpx.Client
) -> None:
    Repository.create(repository.path.parent, "empty")
    broken = Repository.create(repository.path.parent, "broken")
    broken.commit(b"lost")
    break_head(broken)
    repository.commit(b"more")
    page = get(client, "/")
    damaged, empty, good = rows(page)
    message = "its metadata cannot be read; the server's log says why"
    assert damaged == ["broken", "cannot be read", message]
    assert empty == ["empty", "never committed", "no commit yet"]
    assert (*good[:2], *good[3:7]) == ("m", "fresh", "2", "3", "5 B", "+1 added")


def test_the_front_page_counts_filters_and_sorts(
    repository: Repository, client: httpx.Client
) -> None:
    Repository.create(repository.path.parent, "empty")
    states = [each for each in get(client, "/").all("a") if "class" in each.attributes][2:]
    assert [link.text for link in states] == ["1 never committed", "1 fresh"]
    for query, names in [
        ("", ["empty", "m"]),
        ("?q=MP", ["empty"]),
        ("?q=none", []),
        ("?state=fresh", ["m"]),
        ("?state=fresh&q=empty", []),
        ("?sort=size", ["m", "empty"]),
        ("?sort=state", ["empty", "m"]),
        ("?sort=x&state=&q=", ["empty", "m"]),
    ]:
        page = get(client, f"/{query}")
        assert [row[0] for row in rows(page)] == names, query
        assert ("No module matches" in page.text) == (not names)


def test_many_modules_are_paged(repository: Repository, client: httpx.Client) -> None:
    for number in range(44):
        Repository.create(repository.path.parent, f"x{number:02}")
    listed, address = [], "/"
    while address:
        page = get(client, address)
        listed += [row[0] for row in rows(page)]
        assert len(rows(page)) <= 40
        following = [link for link in page.all("a") if link.attributes.get("rel") == "next"]
        address = urljoin(address, following[0]["href"]) if following else ""
    assert listed == ["m", *(f"x{number:02}" for number in range(44))]
    assert "1 to 40 of 45" in get(client, "/").text
    assert len(rows(get(client, "/?start=all"))) == 45
    assert rows(get(client, "/?start=999")) == []


def test_a_module_says_how_to_mirror_it(repository: Repository, client: httpx.Client) -> None:
    url = str(client.base_url)
    assert repository.serial == 1
    texts = [each.text for each in get(client, "/modules/m").all("pre")]
    assert f"huai-client add m {url} /srv/mirror/m huai-client sync m" in texts
    assert f"git clone --bare {url}/git/m.git" in texts
    hostile = client.get("/modules/m", headers={"Host": "a;rm -rf /"})
    assert "rm -rf" not in hostile.text


def test_a_module_says_which_key_to_pin_and_how_package_managers_use_it(tmp_path: Path) -> None:
    tree, key = tmp_path / "tree", tmp_path / "key"
    places = ("dists/stable/main/binary-all/Packages", "dists/stable/by-hash/d/x", "dists/a/b/c")
    for place in (*places, "simple/x", "packages/x", "core/os/x", "repodata/repomd.xml"):
        (tree / place).parent.mkdir(parents=True)
        (tree / place).write_text(place)
    root = tmp_path / "state"
    new = run_server(root, "key", "new", str(key))
    assert new.returncode == 0, new
    urls = (
        "--content-url",
        "rsync://mirror.example/m",
        "--content-url",
        "https://mirror.example/m/",
    )
    assert run_server(root, "add", "m", str(tree), *urls).returncode == 0
    settings = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'[signing]\nkey = "{key}"\n{settings}')
    assert run_server(root, "commit", "m").returncode == 0
    with serving(root) as server:
        page = parse(httpx.get(f"{server.url}/modules/m").text)
    texts = dict(zip((each.text for each in page.all("dt")), page.all("dd"), strict=False))
    recipes = {name: each.one("pre").text for name, each in texts.items() if each.all("pre")}
    assert recipes["apt"] == "deb https://mirror.example/m stable main"
    assert recipes["pip"] == "pip install --index-url https://mirror.example/m/simple/ PACKAGE"
    assert recipes["pacman"] == "Server = https://mirror.example/m/$repo/os/$arch"
    assert recipes["dnf"] == "[m] name=m baseurl=https://mirror.example/m/"
    pinned = tomllib.loads(recipes["client.toml"].replace(" verify", "\nverify"))
    assert (len(pinned["keys"]), pinned["verify"]) == (1, "require")
    assert pinned["keys"][0] in run_server(root, "key", "show").stdout


def test_a_module_has_a_badge_and_a_feed(repository: Repository, client: httpx.Client) -> None:
    repository.commit(b"more")
    badge = client.get("/modules/m/badge.svg")
    assert badge.headers["content-type"] == "image/svg+xml; charset=utf-8"
    title = ET.fromstring(badge.content).find("{http://www.w3.org/2000/svg}title")  # noqa: S314 - our own server's
    assert title is not None
    assert title.text == "m: serial 2 · fresh"
    feed = ET.fromstring(client.get("/modules/m/atom.xml").content)  # noqa: S314 - our own server's
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    assert entries[0].findtext(f"{atom}id") == f"urn:x-huai:{repository.head()}"
    links = [each.attrib["href"] for one in entries for each in one.findall(f"{atom}link")]
    base = f"{client.base_url}/modules/m"
    ids = [each.findtext(f"{atom}id", "").rpartition(":")[2][:12] for each in entries]
    assert links == [f"{base}/diff/{ids[1]}..{ids[0]}", f"{base}/tree/{ids[1]}"]
    for name in ("badge.svg", "atom.xml"):
        assert client.get(f"/modules/nope/{name}").status_code == 404


def test_the_page_of_the_api_lists_its_addresses(client: httpx.Client) -> None:
    page = get(client, "/api")
    assert "/api/v1/modules/{name}/tree/{commit}" in [each.text for each in page.all("code")]
    for link in page.one("tbody").all("a"):
        if link.text != "/api/v1/events":  # it never ends
            assert client.get(urljoin("/api", link["href"])).status_code == 200


def test_the_page_of_a_module_lists_its_commits(
    repository: Repository, client: httpx.Client
) -> None:
    for _ in range(104):
        repository.commit(b"")
    address: str | None = "/modules/m"
    serials: list[int] = []
    while address:
        page = get(client, address)
        if not serials:
            assert page.one("h1").text == "m"
            assert rows(page)[0][5] == repository.head()[:12]
        serials += [int(row[0]) for row in rows(page)]
        older = [link["href"] for link in page.all("a") if link.attributes.get("rel") == "next"]
        address = urljoin("/modules/m", older[0]) if older else None
    assert serials == list(range(105, 0, -1))


def test_the_calendar_of_a_year_leads_to_the_commits_of_a_day(
    repository: Repository, client: httpx.Client
) -> None:
    for age in (400, 9, 9, 1):
        repository.commit(b"", at=int(time.time()) - age * 86400)
    address = "/modules/m?period=year&lang=en"
    chart = next(each for each in get(client, address).all("svg") if each.all("a"))
    assert [each.one("title").text[10:] for each in chart.all("a")] == [
        ": commits: 2",
        ": commits: 1",
    ]
    before = urljoin(address, chart.all("a")[0]["href"])
    assert [row[0] for row in rows(get(client, before))] == ["4", "3", "2", "1"]
    assert "calendar" not in client.get("/modules/m").text


def test_a_commit_that_is_late_is_overdue(repository: Repository, client: httpx.Client) -> None:
    """The commits of this repository are of the year 2023, and seconds apart."""
    for _ in range(4):
        repository.commit(b"more")
    for path in ("/", "/modules/m"):
        times = get(client, path).all("time")
        (due,) = (time for time in times if time.attributes.get("class") == "due bad")
        assert due.text.startswith("overdue by ")


def test_a_damaged_module_has_a_page_that_says_so(
    repository: Repository, client: httpx.Client
) -> None:
    break_head(repository)
    for path in ("/modules/m", "/modules/m?before=1", "/modules/m?before=x"):
        page = get(client, path)
        assert "cannot be read" in page.one("main").text
        assert str(repository.path.parent) not in page.text


def test_an_unknown_module_has_a_page_too(client: httpx.Client) -> None:
    for path in ("/modules/nope", "/modules/%3Cscript%3E", "/modules/a%0Ab"):
        page = get(client, path, 404)
        assert page.one("h1").text == "no such module"
        assert len(page.all("script")) == 1
    path = "/modules/m/tree/999/d"
    links = get(client, path, 404).one("main").all("a")
    assert [urljoin(path, link["href"]) for link in links] == ["/", "/modules/m"]


def test_an_unknown_address_is_a_page_for_people(client: httpx.Client) -> None:
    for path in ("/nothing", "/docs", "/api/v1/nothing", "/content/nope/x"):
        answer = client.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert answer.status_code == 404
        assert "Accept" in answer.headers.get_list("vary", split_commas=True)
        error = parse(answer.text)
        assert "404" in error.one("main").text
        assert urljoin(path, error.one("main").all("a")[0]["href"]) == "/"
        assert client.get(path).json().keys() == {"error", "hint"}


def test_a_bug_is_a_page_for_people(repository: Repository, client: httpx.Client) -> None:
    (repository.path.parent / "bug").touch()
    for path in ("/", "/modules/m/tree/latest", "/api/v1/modules"):
        answer = client.get(path, headers={"Accept": "text/html", "Accept-Language": "zh"})
        assert answer.status_code == 500
        error = parse(answer.text)
        assert error.one("h1").text == "服务器内部错误"
        assert str(repository.path.parent) not in answer.text
        assert urljoin(path, error.one("main").all("a")[0]["href"]) == "/"
    values = {"error": "internal error", "hint": "see the server's log"}
    assert client.get("/api/v1/modules").json() == values


def test_names_are_only_text(repository: Repository, client: httpx.Client) -> None:
    name = "<b onclick='x'>&\""
    repository.path.rename(repository.path.parent / f"{name}.git")
    front = get(client, "/")
    assert front.all("b") == []
    (link,) = front.one("tbody").all("a")
    assert get(client, urljoin("/", link["href"])).one("h1").text == link.text == name


@pytest.mark.parametrize("path", ["/", "/modules/m", "/modules/nope"])
def test_each_page_can_be_used_by_everybody(client: httpx.Client, path: str) -> None:
    for language in ("en", "zh"):
        page = parse(client.get(path, params={"lang": language}).text)
        assert page.one("html")["lang"] == language
        assert page.one("head").one("title").text
        assert len(page.all("main")) == len(page.all("h1")) == len(page.all("footer")) == 1
        assert all(nav.attributes.get("aria-label") for nav in page.all("nav"))
        assert all(head["scope"] in {"col", "row"} for head in page.all("th"))
        assert all(table.one("caption").text for table in page.all("table"))
        assert all("aria-label" in each.attributes or each.all("title") for each in page.all("svg"))
        skip = page.one("body").children[0]
        assert skip["href"] == f"#{page.one('main')['id']}"
        ids = [element["id"] for element in page.all() if "id" in element.attributes]
        assert len(ids) == len(set(ids))


def test_no_page_runs_code_or_loads_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "://" not in policy
    page = parse(answer.text)
    assert page.all("style") == []
    assert all(script.text == "" for script in page.all("script"))
    attributes = [pair for element in page.all() for pair in element.attributes.items()]
    assert not [name for name, _ in attributes if name == "style" or name.startswith("on")]
    addresses = [value or "" for name, value in attributes if name in ("href", "src")]
    assert [text for text in addresses if ":" in text or text.startswith("/")] == []


def test_a_first_view_is_light(place: Site, up: Upstream) -> None:
    for number in range(230):
        folder = f"pool/main/libx/libxpresent-{number:03}"
        up.put(f"{folder}/libxpresent-dev_1.0.0-{number}+b10_amd64.deb".encode(), b"x")
        up.put(f"pool/linux-image-6.1.0-{number}-amd64_6.1.133-1_amd64.deb".encode(), b"x")
    up.commit()
    below = f"/modules/{up.name}/tree/latest/pool"
    pages = ("/", f"/modules/{up.name}", f"/modules/{up.name}?period=year", "/mirrors", "/api")
    with httpx.Client(base_url=place.url, timeout=60) as client:
        for page in (*pages, below, f"{below}/main/libx"):
            answer = client.get(page)
            addresses = [
                element.attributes.get("href", element.attributes.get("src", ""))
                for element in parse(answer.text).all("link", "script")
            ]
            parts = [client.get(urljoin(page, address)) for address in addresses]
            assert [part.status_code for part in parts] == [200] * 3
            assert all("immutable" in part.headers["cache-control"] for part in parts)
            bodies = [each.content for each in (answer, *parts)]
            assert sum(map(len, bodies)) < PLAIN, page
            assert sum(len(gzip.compress(each, 5)) for each in bodies) < COMPRESSED, page
        assert client.get("/pages/other.css").status_code == 404


def test_a_module_has_a_page_while_all_readers_are_busy(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_READERS", "_WAIT_SECONDS"):
        monkeypatch.setattr(browse, name, 0)
    settings = convert("the options of a test", {"port": 0}, Listen)
    transport = httpx.ASGITransport(Application(settings, Folder(repository.path.parent)))  # type: ignore[arg-type]

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            addresses = ("/modules/m", "/modules/m/tree/latest")
            return [(await client.get(each)).status_code for each in addresses]

    assert asyncio.run(ask()) == [200, 503]


def test_a_page_is_not_sent_again(repository: Repository, client: httpx.Client) -> None:
    headers = {"If-None-Match": client.get("/").headers["etag"]}
    again = client.get("/", headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["vary"] == "Accept-Language"
    repository.commit(b"more")
    assert client.get("/", headers=headers).status_code == 200


def test_the_language_is_the_browsers_or_the_chosen_one(client: httpx.Client) -> None:
    chinese = "zh-CN,zh;q=0.9"
    assert get(client, "/", language=chinese).one("h1").text == "模块"
    page = get(client, "/?lang=en", language=chinese)
    assert page.one("h1").text == "Modules"
    (link,) = page.one("tbody").all("a")
    assert get(client, link["href"], language=chinese).one("html")["lang"] == "en"
    assert get(client, "/?lang=xx").one("html")["lang"] == "en"
