"""The pages of commits: trees, files, searches, comparisons, whatever the names are."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import httpx
import pytest
from fastapi import Request, Response

from huai_program.humanize import human
from huai_schema.paths import RelPath
from huai_server.http.asgi.errors import HttpError
from huai_server.http.pages.browse import _LINE, _READERS, Browser, Location, View
from huai_server.http.pages.reading import open_commit
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.search import Hits, Searcher
from huai_server.http.pages.totals import TotalsCounter
from tests.support.html import Element, parse
from tests.support.processes import until
from tests.support.upstream import Site, Upstream, site

HOSTILE = {
    b"<script>alert(1)<": "<script>alert(1)<",
    b"a b&c?d#e%41": "a b&c?d#e%41",
    b"broken\xff": "broken\\xff",
    b"new\nline": "new\\nline",
    b"rtl\xe2\x80\xaegnp": "rtl\\u202egnp",
    b"\"quoted'": "\"quoted'",
    b"%2e%2e": "%2e%2e",
    "中文".encode(): "中文",
}
"""Names, and how they are listed."""
ORDERS = ("Size", "Modified (UTC)")
"""The columns by which a directory can be sorted."""


@pytest.fixture
def client(place: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=place.url, timeout=60) as client:
        yield client


@pytest.fixture
def up(place: Site) -> Upstream:
    return place.upstream()


def get(client: httpx.Client, address: str, status: int = 200) -> Element:
    answer = client.get(address)
    assert answer.status_code == status, address
    return parse(answer.text)


def names(page: Element) -> list[str]:
    return [each.text for each in page.all("th") if each["scope"] == "row"]


def new_browser() -> Browser:
    """Pages of commits without a server."""
    return Browser(lambda *_: asyncio.sleep(0))


def page_at(path: str) -> Page:
    """The page of a request without headers."""
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
    return Page(Request({**scope, "query_string": b"", "headers": []}))


def follow(client: httpx.Client, address: str, link: Element) -> tuple[str, Element]:
    target = urljoin(address, link["href"])
    return target, get(client, target)


def linked(page: Element, rel: str) -> list[Element]:
    return [link for link in page.all("a") if link.attributes.get("rel") == rel]


def test_every_name_is_shown_and_leads_to_its_page(client: httpx.Client, up: Upstream) -> None:
    for name in HOSTILE:
        up.put(name, b"12345")
        up.put(b"dir-" + name + b"/inside", b"")
    up.commit()
    address = f"/modules/{up.name}/tree/1"
    page = get(client, address)
    folders = {f"dir-{text}/" for text in HOSTILE.values()}
    assert set(names(page)) == {*HOSTILE.values(), *folders}
    assert len(page.all("script")) == 1
    for row in page.one("tbody").all("tr"):
        (link,) = row.all("a")
        inner_address, inner = follow(client, address, link)
        assert inner.one("h1").text == link.text.rstrip("/")
        if link.text.endswith("/"):
            assert names(inner) == ["inside"]
            (below,) = inner.one("tbody").all("a")
            assert follow(client, inner_address, below)[1].one("h1").text == "inside"


def test_a_file_has_a_page_with_all_its_attributes(client: httpx.Client, up: Upstream) -> None:
    first = up.put(b"d/first", b"12345", mode=0o640)
    os.link(first, up.at(b"d/second"))
    up.at(b"d/to").symlink_to("../away")
    up.commit()
    tree = f"/modules/{up.name}/tree/1/d"
    text = get(client, f"{tree}/first").one("main").text
    assert [word for word in ("5 B", "0640", "BLAKE3") if word not in text] == []
    assert "A hardlink of d/first" in get(client, f"{tree}/second").one("main").text
    assert "../away" in get(client, f"{tree}/to").one("main").text
    assert names(get(client, f"{tree}/")) == ["first", "second", "to → ../away"]


def test_a_directory_shows_its_readme(client: httpx.Client, place: Site) -> None:
    up = place.upstream(serve_content=True)
    texts = {
        b"a/README": b"<script>alert(1)\n\n" + "中文".encode(),
        b"b/README.md": b"x" * 20_000,
        b"b/A": b"before",
        b"b/README.rst": b"other",
        b"c/README": b"broken \xff",
        b"d/README": b"\x1b[31mred",
        b"e/README": b"x" * 70_000,
        b"f/README.txt": b"changed",
        b"h/README": b"former",
    }
    for path, content in texts.items():
        up.put(path, content)
    up.at(b"g").mkdir()
    up.at(b"g/README").symlink_to("../a/README")
    up.commit()
    up.put(b"h/README", b"present")
    up.commit()
    up.put(b"f/README.txt", b"another one")
    tree = f"/modules/{up.name}/tree/1"
    previews = {name: get(client, f"{tree}/{name}").all("pre") for name in "abcdefgh"}
    assert {name: len(each) for name, each in previews.items() if each} == {"a": 1, "b": 1}
    assert previews["a"][0].text == "<script>alert(1) 中文"
    assert previews["b"][0].text == "x" * 8000 + " …"
    (text,) = get(client, f"/modules/{up.name}/tree/2/h").all("pre")
    assert text.text == "present"
    (link,) = [each for each in get(client, f"{tree}/a").all("a") if each.text == "README"][1:]
    assert follow(client, f"{tree}/a", link)[1].one("h1").text == "README"
    private = place.upstream()
    private.put(b"README", b"not served")
    private.commit()
    assert get(client, f"/modules/{private.name}/tree/1").all("pre") == []


def test_a_large_directory_is_paged(client: httpx.Client, up: Upstream) -> None:
    files = [f"{number:03}" for number in range(250)]
    for name in files:
        up.put(b"large/%b" % name.encode())
        up.put(b"large/dir%b/x" % name.encode())
    up.commit()
    address = f"/modules/{up.name}/tree/1/large"
    page = get(client, address)
    listed = names(page)
    while links := linked(page, "next"):
        address, page = follow(client, address, links[0])
        assert len(names(page)) <= 200
        listed += names(page)
    assert listed == [f"dir{name}/" for name in files] + files
    assert "401 to 500 of 500" in page.text
    (back,) = linked(page, "prev")
    assert "201 to 400" in follow(client, address, back)[1].text
    assert names(get(client, f"/modules/{up.name}/tree/1/large?start=9999")) == []


def test_a_large_directory_is_entered_by_letters_and_a_small_one_is_sorted(
    client: httpx.Client, up: Upstream
) -> None:
    for number in range(300):
        up.put(b"large/lib%c-%03d" % (b"abc"[number % 3], number))
        up.put("chinese/lib{}-{:03}".format("中串"[number % 2], number).encode())
        up.put(f"many/{chr(0x4E00 + number)}".encode())
    up.put(b"chinese/lib")
    for name, size, time in ((b"one", 1, 30), (b"two", 22, 10), (b"three", 3, 20)):
        os.utime(up.put(b"small/" + name, b"x" * size), (time, time))
    up.at(b"small/dir").mkdir()
    up.commit()
    address = f"/modules/{up.name}/tree/1/large"
    page = get(client, address)
    letters = [link for link in page.all("a") if link.text in {"liba", "libb", "libc"}]
    assert [link.text for link in letters] == ["liba", "libb", "libc"]
    for link, first in zip(letters, ("liba-000", "libb-001", "libc-002"), strict=True):
        assert names(follow(client, address, link)[1])[0] == first
    beginnings = {}
    for folder in ("chinese", "many"):
        navs = get(client, f"/modules/{up.name}/tree/1/{folder}").all("nav")
        (nav,) = (each for each in navs if each.attributes.get("class") == "letters")
        beginnings[folder] = [each.text for each in nav.all("a")]
    assert beginnings["chinese"] == ["lib", "lib中", "lib串"]
    assert beginnings["many"] == [chr(0x4E00 + number) for number in range(80)]
    address = f"/modules/{up.name}/tree/1/small"
    page = get(client, address)
    links = {link.text: link for link in page.all("a")}
    assert "Name" not in links
    by_size, by_time = (follow(client, address, links[each])[1] for each in links if each in ORDERS)
    assert names(by_size) == ["dir/", "two", "three", "one"]
    assert names(by_time) == ["dir/", "one", "three", "two"]
    assert names(get(client, f"{address}?sort=other")) == ["dir/", "one", "three", "two"]
    address = f"/modules/{up.name}/tree/1/large?sort=size"
    (later,) = linked(get(client, address), "next")
    assert len(names(follow(client, address, later)[1])) == 100


def test_a_directory_has_the_size_and_number_of_its_files(
    client: httpx.Client, up: Upstream
) -> None:
    up.many(b"large", 300)
    up.put(b"small/deep/file", b"x" * 2048)
    up.at(b"small/link").symlink_to("away")
    up.put(b"small/empty", b"")
    up.put(b"a/file", b"x")
    up.commit()
    tree = f"/modules/{up.name}/tree/1"
    assert names(get(client, f"{tree}?sort=size")) == ["large/", "small/", "a/"]
    cells = {row.one("th").text: row.all("td")[0].text for row in get(client, tree).all("tr")[1:]}
    size = sum(each.stat().st_size for each in up.at(b"large").iterdir())
    counts = {"large/": f"300 files {human(size)}", "small/": "2 files 2.0 KiB"}
    assert cells == {"a/": "1 file 1 B"} | counts
    for address in (f"/api/v1{tree}", f"/api/v1/modules/{up.name}/tree/latest"):
        _, large, small = client.get(address).json()["entries"]
        assert (large["files"], large["size"]) == (300, size)
        assert (small["files"], small["size"]) == (2, 2048)


def test_what_takes_longer_is_counted_for_the_next_page(up: Upstream) -> None:
    up.many(b"large", 300)
    up.commit()
    snapshot = open_commit(up.places.repository, "1").snapshot
    entries = [*snapshot.entries()]
    counter = TotalsCounter(seconds=0)
    assert counter.read(snapshot, entries) == {}
    until(lambda: counter.read(snapshot, entries))
    totals = counter.read(snapshot, entries)
    assert {path: each.files for path, each in totals.items()} == {b"": 300, b"large": 300}


def test_a_search_finds_names_and_parts_of_paths(client: httpx.Client, up: Upstream) -> None:
    for path in (b"pool/a/Tool_1.deb", b"pool/b/tool_2.deb", b"other/x\ntool", b"tools/readme"):
        up.put(path)
    up.commit()
    tree = f"/modules/{up.name}/tree/1"

    def search(query: str, below: str = "") -> set[str]:
        page = get(client, f"{tree}{below}?q={quote(query)}")
        assert page.one("input")["value"] == query
        assert {each.text.lower() for each in page.all("mark")} <= {query.lower()}
        return {*names(page)}

    assert search("tool") == {"pool/a/Tool_1.deb", "pool/b/tool_2.deb", "other/x\\ntool", "tools/"}
    assert search("tool", "/pool") == {"pool/a/Tool_1.deb", "pool/b/tool_2.deb"}
    assert search("b/TOOL") == {"pool/b/tool_2.deb"}
    assert search("x\nt") == {"other/x\\ntool"}
    assert search("<script>") == set()
    assert search("tool*2.DEB") == search("b/*") == {"pool/b/tool_2.deb"}
    assert search("t??l*") == search("tool") - {"other/x\\ntool"}
    assert search("[t]ool*") == set()


def test_a_search_ends_at_its_limit_and_says_so(client: httpx.Client, up: Upstream) -> None:
    up.many(b"many", 210)
    up.commit()
    assert "Not everything" not in get(client, f"/modules/{up.name}/tree/1?q=1").text
    page = get(client, f"/modules/{up.name}/tree/1/many?q=many/")
    assert len(names(page)) == 200
    assert "Not everything was searched" in page.text


def test_the_differences_of_two_commits(client: httpx.Client, up: Upstream) -> None:
    up.put(b"changed", b"1")
    up.put(b"gone<b>", b"22")
    up.many(b"from", 200)
    up.commit()
    up.put(b"changed", b"333")
    up.put(b"new", b"")
    up.at(b"gone<b>").unlink()
    up.at(b"from").rename(up.at(b"to"))
    up.commit()
    page = get(client, f"/modules/{up.name}/diff/1..2")
    rows = {row.one("th").text: row for row in page.all("tr") if row.all("td")}
    changes = {name: row.children[0].text for name, row in rows.items()}
    assert changes["new"] == "added"
    assert changes["gone<b>"] == "removed"
    assert changes["from → to"] == "moved"
    (changed,) = (row.text for name, row in rows.items() if name.startswith("changed"))
    assert "size" in changed
    assert "1 B → 3 B" in changed
    assert rows["gone<b>"].all("a") == []
    assert "Nothing differs" in get(client, f"/modules/{up.name}/diff/2..2").text
    text = page.one("main").text
    for summary in ("1 added", "1 removed 2 B", "1 changed 3 B", "1 moved"):
        assert summary in text
    added = get(client, f"/modules/{up.name}/diff/1..2?kind=added")
    assert names(added) == ["new"]
    assert linked(page, "prev") == linked(page, "next") == []


def test_a_comparison_leads_to_its_neighbours(client: httpx.Client, up: Upstream) -> None:
    for number in range(4):
        up.put(b"d/%d" % number)
        up.commit()
    address = f"/modules/{up.name}/diff/2..3"
    page = get(client, address)
    groups = [each.text for each in page.all("th") if each["scope"] == "rowgroup"]
    assert groups == ["d/"]
    for rel, title in (("prev", "From serial 1 to 2"), ("next", "From serial 3 to 4")):
        (link,) = linked(page, rel)
        assert follow(client, address, link)[1].one("h1").text == title


def test_a_commit_is_named_by_a_time(client: httpx.Client, up: Upstream) -> None:
    for name in (b"a", b"b", b"c"):
        up.put(name)
        up.commit()
    module = f"/modules/{up.name}"
    for time in ("2099-01-01", "2099-01-01T12:00", "2099-01-01T12:00:00"):
        assert names(get(client, f"{module}/tree/{time}")) == ["a", "b", "c"]
    assert get(client, f"{module}/diff/1..2099-01-01").one("h1").text == "From serial 1 to 3"
    assert get(client, f"{module}/diff/2..").one("h1").text == "From serial 2 to 3"
    chosen = client.get(f"{module}/diff?old=2&new=2099-01-01&lang=zh")
    assert chosen.status_code == 303
    address = urljoin(f"{module}/diff", chosen.headers["location"])
    assert address == f"{module}/diff/2..2099-01-01?lang=zh"
    form = get(client, f"{module}/diff/2..").one("form")
    assert urljoin(f"{module}/diff/2..", form["action"]) == f"{module}/diff"
    for wrong in ("tree/2020-01-01", "tree/2099-13-01", "tree/-", "diff/2020-01-01..", "diff/..2"):
        get(client, f"{module}/{wrong}", 404)
    for time in ("0001-01-01", "9999-12-31T23:59"):
        assert client.get(f"{module}/tree/{time}").status_code in {200, 404}


def test_a_file_has_downloads_and_a_history(client: httpx.Client, place: Site) -> None:
    up = place.upstream(content_urls=("https://mirror.example/x/", "rsync://mirror.example/x"))
    for content in (b"1", b"", b"333"):
        up.put(b"d/a#b", content)
        up.put(b"other", content)
        up.commit()
    up.at(b"d/a#b").unlink()
    up.commit()
    address = f"/modules/{up.name}/tree/3/d/a%23b"
    page = get(client, address)
    (download,) = (link for link in page.all("a") if link.text == "Download")
    target = client.get(urljoin(address, download["href"]))
    assert (target.status_code, target.headers["cache-control"]) == (302, "no-store")
    assert target.headers["location"] == "https://mirror.example/x/d/a%23b"
    for wrong in (f"/modules/{up.name}/download/4/d/a%23b", f"/modules/{up.name}/download/3/d"):
        get(client, wrong, 404)
    history = get(client, f"{address}?history=1").one("tbody")
    rows = [[each.text for each in row.all("th", "td")] for row in history.all("tr")]
    assert [(row[0], row[2]) for row in rows] == [
        *(("4", "not there"), ("3", "3 B"), ("2", "0 B"), ("1", "1 B")),
    ]


def test_a_download_leads_to_an_address_that_a_header_can_hold(up: Upstream) -> None:
    """Commits of other upstreams may name any address; `server.toml` may not."""
    up.put(b"file")
    up.commit()
    browser, location = new_browser(), Location(up.name, "1", RelPath(b"file"))

    def download(*urls: str) -> Response:
        view = View(content_urls=urls)
        work = browser.download(page_at("/"), up.places.repository, location, view, "")
        return asyncio.run(work)

    hosts, good = ("https://镜像.example/x", "https://é.example/x"), "https://mirror.example/x"
    assert download(*hosts, good).headers["location"] == f"{good}/file"
    with pytest.raises(HttpError) as caught:
        download(*hosts)
    assert caught.value.status == 404


def test_the_newest_commit_has_an_address(client: httpx.Client, up: Upstream) -> None:
    up.put(b"first")
    up.commit()
    address = f"/modules/{up.name}/tree/latest"
    assert names(get(client, address)) == ["first"]
    up.put(b"second")
    up.commit()
    assert names(get(client, address)) == ["first", "second"]


def test_programs_read_commits_trees_and_differences(client: httpx.Client, up: Upstream) -> None:
    api = f"/api/v1/modules/{up.name}"

    def read(path: str) -> Any:
        answer = client.get(api + path)
        assert answer.status_code == 200, path
        return answer.json()

    up.many(b"many", 250)
    up.put(b"na\xefve", b"12345")
    up.at(b"link").symlink_to("away")
    up.commit()
    up.at(b"many").rename(up.at(b"renamed"))
    up.put(b"na\xefve", b"1")
    up.commit()
    listed = read("/commits")
    assert [each["serial"] for each in listed["commits"]] == [2, 1]
    newest, oldest = listed["commits"]
    assert (newest["new_bytes"], oldest["new_bytes"]) == (1, oldest["bytes"])
    assert read("/commits?before=2")["commits"] == listed["commits"][1:]
    assert read("/commits?before=1") == {"commits": [], "before": None}
    top = read("/tree/1")
    assert [each["path"] for each in top["entries"]] == ["many", "link", "na\udcefve"]
    assert top["entries"][2]["size"] == 5
    assert read("/tree/1/na%EFve")["entries"] == top["entries"][2:]
    first = read("/tree/latest/renamed")
    rest = read(f"/tree/latest/renamed?start={first['next']}")
    assert len(first["entries"]) + len(rest["entries"]) == 250
    assert (first["next"], rest["next"], rest["serial"]) == (200, None, 2)
    results = read("/tree/1?q=na*ve")
    assert (results["entries"], results["complete"]) == (top["entries"][2:], True)
    rows = {each["path"]: each for each in read("/diff/1..2")["differences"]}
    assert (rows["renamed"]["change"], rows["renamed"]["source"]) == ("moved", "many")
    assert (rows["na\udcefve"]["old"]["size"], rows["na\udcefve"]["new"]["size"]) == (5, 1)
    assert "size" in rows["na\udcefve"]["attributes"]
    assert list(read("/diff/1..2?kind=moved")["differences"]) == [rows["renamed"]]
    for wrong in ("/tree/9", "/tree/1/none", "/diff/1", "/diff/1..9", "/tree/1/%2e%2e"):
        assert client.get(api + wrong).status_code == 404, wrong
    for odd in ("start=-1", "start=x", "start=99999999999999999999", "q="):
        assert client.get(f"{api}/tree/1?{odd}").status_code == 200, odd


def test_few_read_old_commits_at_a_time(client: httpx.Client, up: Upstream) -> None:
    up.put(b"first")
    first = up.commit().head.commit
    up.put(b"second")
    up.commit()
    address = f"/modules/{up.name}?before=2"
    get(client, address)
    path = up.places.repository / "objects" / first[:2] / first[2:]
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)  # opening it waits, and reading it then finds nothing
    with ThreadPoolExecutor(_READERS + _LINE + 1) as readers:
        every = [readers.submit(client.get, address) for _ in range(_READERS + _LINE + 1)]
        try:
            assert next(as_completed(every)).result().status_code == 503
        finally:
            handle = os.open(path, os.O_RDWR)
            path.unlink()
            path.write_bytes(content)
            os.close(handle)
    statuses = Counter(each.result().status_code for each in every)
    assert statuses[500] <= _READERS


def test_many_differences_are_paged(client: httpx.Client, up: Upstream) -> None:
    up.put(b"a")
    up.commit()
    up.many(b"new", 250)
    up.commit()
    address = f"/modules/{up.name}/diff/1..2"
    first = get(client, address)
    (link,) = linked(first, "next")
    _, second = follow(client, address, link)
    # The directory is new, and the one above it has another time only.
    assert len({*names(first), *names(second)}) == 251
    line = "Directories of which only the time changed: 1"
    assert sorted(line in page.text for page in (first, second)) == [False, True]
    assert linked(second, "next") == []


def test_a_commit_is_named_by_serial_or_id(client: httpx.Client, up: Upstream) -> None:
    up.put(b"a")
    head = up.commit().head.commit
    for name in ("1", head, head[:12]):
        assert names(get(client, f"/modules/{up.name}/tree/{name}")) == ["a"]
    module = get(client, f"/modules/{up.name}")
    (row,) = module.one("tbody").all("tr")
    assert names(follow(client, f"/modules/{up.name}", row.all("a")[0])[1]) == ["a"]


def test_an_unknown_path_has_a_page(
    client: httpx.Client, up: Upstream, subtests: pytest.Subtests
) -> None:
    up.put(b"a")
    up.commit()
    for rest in (
        *("tree/2", "tree/x", f"tree/{'9' * 5000}", "tree/1/b", "tree/1/a/b", "tree/1/%2e%2e/a"),
        *("tree/1/x%2fy", "tree/1/a%00", f"tree/1/{'a/' * 3000}", "diff/1", "diff/1..9"),
        "diff/1..1?start=99999999",
    ):
        with subtests.test(rest[:20]):
            assert get(client, f"/modules/{up.name}/{rest}", 404).one("h1").text


def test_a_search_of_all_modules(tmp_path: Path) -> None:
    # A site of its own: the search of all modules has a time limit.
    with site(tmp_path / "site") as place, httpx.Client(base_url=place.url, timeout=60) as client:
        many, few, private = place.upstream(), place.upstream(), place.upstream(access="private")
        for number in range(30):
            many.put(b"wanted-by-all-%d" % number)
        for up in (few, private):
            up.put(b"dir/Wanted-by-all <b>")
        for up in (many, few, private):
            up.commit()
        place.upstream()
        page = get(client, "/search?q=wanted-by-all")
        assert [each.text for each in page.all("h2")] == [many.name, few.name]
        assert names(page).count("dir/Wanted-by-all <b>") == 1
        (more,) = [each for each in page.all("a") if each.text == "More in this module"]
        assert len(names(follow(client, "/search", more)[1])) == 30
        assert "0 found" in get(client, "/search?q=wanted-by-none").text
        assert get(client, "/search").all("h2") == []
        # As many as are shown of each module are all that there are.
        page = get(client, "/search?q=wanted-by-all-1?")
        assert len(names(page)) == 10
        many.many(b"twenty", 20)
        many.commit()
        page = get(client, "/search?q=twenty/")
        assert len(names(page)) == 20
        assert [each for each in page.all("a") if each.text == "More in this module"] == []
        results = client.get("/api/v1/search?q=Wanted-by-all").json()
        assert results["next"] is None
        assert [
            (each["module"], each["serial"], len(each["entries"]), each["complete"])
            for each in results["modules"]
        ] == [(many.name, 2, 20, False), (few.name, 1, 1, True)]
        entry = results["modules"][1]["entries"][0]
        assert (entry["path"], entry["type"], entry["size"]) == ("dir/Wanted-by-all <b>", "file", 0)
        results = client.get(f"/api/v1/search?q=wanted-by-all&start={few.name}").json()
        assert [each["module"] for each in results["modules"]] == [few.name]
        for query in ("", "?q=a&start=zzz"):
            assert client.get(f"/api/v1/search{query}").json() == {"modules": [], "next": None}
        assert "/api/v1/search" in get(client, "/api").text


def test_a_search_follows_commits(client: httpx.Client, up: Upstream) -> None:
    up.many(b"many", 500)
    up.put(b"pool/first.deb")
    up.commit()
    latest = f"/modules/{up.name}/tree/latest?q=first"
    assert names(get(client, latest)) == ["pool/first.deb"]
    up.put(b"pool/first.deb", b"changed")
    up.put(b"pool/first-2.deb", b"22")
    up.commit()
    page = get(client, latest)
    assert names(page) == ["pool/first-2.deb", "pool/first.deb"]
    assert "7 B" in page.one("tbody").text
    assert names(get(client, f"/modules/{up.name}/tree/1?q=first")) == ["pool/first.deb"]


def test_searches_keep_a_limit_of_memory_and_of_time(tmp_path: Path) -> None:
    with site(tmp_path / "site") as place:
        modules = {}
        for up in (place.upstream(), place.upstream(), place.upstream()):
            up.many(b"many", 500)
            up.commit()
            modules[up.name] = up.places.repository
        for most_bytes in (0, 5000, 1 << 20):
            searcher = Searcher(most_bytes)
            for _ in range(2):
                results = searcher.search_all(modules, b"7", "")
                limits = {name: each.hits.limit for name, each in results.modules.items()}
                assert limits == dict.fromkeys(modules, "hits")
                assert searcher.kept_bytes <= most_bytes
        # Without any time, each part ends at its first module, and the next begins after it.
        searcher, starts = Searcher(seconds=0), [""]
        for _ in modules:
            results = searcher.search_all(modules, b"7", starts[-1])
            assert results.modules[starts[-1] or next(iter(modules))].hits == Hits([], "time")
            starts.append(results.next or "end")
        assert starts == ["", *[*modules][1:], "end"]
        # The last one has no next module, and was not searched either.
        browser, last = new_browser(), dict([*modules.items()][-1:])
        browser.searcher = Searcher(seconds=0)
        answer = asyncio.run(browser.search_page(page_at("/search"), last, "7"))
        page = parse(bytes(answer.body).decode())
        assert "Not everything was searched" in page.text
        assert [each.text for each in page.all("h2")] == [*last]
        assert "0 found" not in page.text


def test_damaged_metadata_have_a_page(client: httpx.Client, up: Upstream) -> None:
    up.many(b"d", 200)
    up.commit()
    for pack in (up.places.repository / "objects" / "pack").iterdir():
        os.truncate(pack, 100)
    for rest in ("tree/1", "tree/1/d/0", "tree/1?q=x", "diff/1..1"):
        page = get(client, f"/modules/{up.name}/{rest}", 500)
        assert page.one("h1").text == "the module's metadata cannot be read"
        assert str(up.root) not in page.text
