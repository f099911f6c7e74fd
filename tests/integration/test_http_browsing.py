"""The pages of what commits hold: trees, files, searches, comparisons, whatever the names are."""

import os
from collections.abc import Iterator
from urllib.parse import quote, urljoin

import httpx
import pytest

from tests.support.html import Element, parse
from tests.support.upstream import Site, Upstream

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
"""Names, and how they are shown."""


@pytest.fixture
def client(place: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=place.url, timeout=60) as made:
        yield made


@pytest.fixture
def up(place: Site) -> Upstream:
    return place.upstream()


def page(client: httpx.Client, address: str, status: int = 200) -> Element:
    answer = client.get(address)
    assert answer.status_code == status, address
    return parse(answer.text)


def names(found: Element) -> list[str]:
    return [row.one("th").text for row in found.one("tbody").all("tr")]


def follow(client: httpx.Client, address: str, link: Element) -> tuple[str, Element]:
    there = urljoin(address, link["href"])
    return there, page(client, there)


def linked(found: Element, rel: str) -> list[Element]:
    return [link for link in found.all("a") if link.attributes.get("rel") == rel]


def test_every_name_is_shown_and_leads_to_its_page(client: httpx.Client, up: Upstream) -> None:
    for name in HOSTILE:
        up.put(name, b"12345")
        up.put(b"dir-" + name + b"/inside", b"")
    up.commit()
    address = f"/modules/{up.name}/tree/1"
    found = page(client, address)
    assert set(names(found)) == {
        *HOSTILE.values(),
        *(f"dir-{shown}/" for shown in HOSTILE.values()),
    }
    assert len(found.all("script")) == 1
    for row in found.one("tbody").all("tr"):
        (link,) = row.all("a")
        there, inner = follow(client, address, link)
        assert inner.one("h1").text == link.text.rstrip("/")
        if link.text.endswith("/"):
            assert names(inner) == ["inside"]
            (below,) = inner.one("tbody").all("a")
            assert follow(client, there, below)[1].one("h1").text == "inside"


def test_a_file_has_a_page_with_all_its_attributes(client: httpx.Client, up: Upstream) -> None:
    first = up.put(b"d/first", b"12345", mode=0o640)
    os.link(first, up.at(b"d/second"))
    up.at(b"d/to").symlink_to("../away")
    up.commit()
    tree = f"/modules/{up.name}/tree/1/d"
    one = page(client, f"{tree}/first").one("main").text
    assert "5 B" in one
    assert "0640" in one
    assert "BLAKE3" in one
    assert "A hardlink of d/first" in page(client, f"{tree}/second").one("main").text
    assert "../away" in page(client, f"{tree}/to").one("main").text
    assert names(page(client, f"{tree}/")) == ["first", "second", "to → ../away"]


def test_a_large_directory_is_paged(client: httpx.Client, up: Upstream) -> None:
    wanted = [f"{number:03}" for number in range(250)]
    for name in wanted:
        up.put(b"large/%b" % name.encode())
        up.put(b"large/dir%b/x" % name.encode())
    up.commit()
    address, found = f"/modules/{up.name}/tree/1/large", []
    while True:
        each = page(client, address)
        assert len(names(each)) <= 200
        found += names(each)
        later = linked(each, "next")
        if not later:
            break
        address = urljoin(address, later[0]["href"])
    assert found == [f"dir{name}/" for name in wanted] + wanted
    assert "401 to 500 of 500" in each.text
    (back,) = linked(each, "prev")
    assert "201 to 400" in follow(client, address, back)[1].text
    assert names(page(client, f"/modules/{up.name}/tree/1/large?start=9999")) == []


def test_a_search_finds_names_and_parts_of_paths(client: httpx.Client, up: Upstream) -> None:
    for path in (b"pool/a/Tool_1.deb", b"pool/b/tool_2.deb", b"other/x\ntool", b"tools/readme"):
        up.put(path)
    up.commit()
    tree = f"/modules/{up.name}/tree/1"

    def hits(query: str, below: str = "") -> set[str]:
        found = page(client, f"{tree}{below}?q={quote(query)}")
        assert found.one("input")["value"] == query
        (several,) = found.all("ul")
        return {item.text for item in several.all("li")}

    assert hits("tool") == {"pool/a/Tool_1.deb", "pool/b/tool_2.deb", "other/x\\ntool", "tools/"}
    assert hits("tool", "/pool") == {"pool/a/Tool_1.deb", "pool/b/tool_2.deb"}
    assert hits("b/TOOL") == {"pool/b/tool_2.deb"}
    assert hits("x\nt") == {"other/x\\ntool"}
    assert hits("<script>") == set()


def test_a_search_ends_at_its_limit_and_says_so(client: httpx.Client, up: Upstream) -> None:
    up.many(b"many", 210)
    up.commit()
    found = page(client, f"/modules/{up.name}/tree/1?q=1")
    assert "Not everything" not in found.text
    found = page(client, f"/modules/{up.name}/tree/1/many?q=many/")
    assert len(found.one("ul").all("li")) == 200
    assert "Not everything was searched" in found.text


def test_what_two_commits_differ_in(client: httpx.Client, up: Upstream) -> None:
    up.put(b"changed", b"1")
    up.put(b"gone<b>", b"22")
    up.many(b"from", 200)
    up.commit()
    up.put(b"changed", b"333")
    up.put(b"new", b"")
    up.at(b"gone<b>").unlink()
    up.at(b"from").rename(up.at(b"to"))
    up.commit()
    found = page(client, f"/modules/{up.name}/diff/1..2")
    rows = {row.one("th").text: row for row in found.one("tbody").all("tr")}
    told = {name: row.children[0].text for name, row in rows.items()}
    assert told["new"] == "added"
    assert told["gone<b>"] == "removed"
    assert told["from → to"] == "moved"
    (changed,) = (row.text for name, row in rows.items() if name.startswith("changed"))
    assert "size" in changed
    assert "1 B → 3 B" in changed
    assert rows["gone<b>"].all("a") == []
    assert "Nothing differs" in page(client, f"/modules/{up.name}/diff/2..2").text


def test_many_differences_are_paged(client: httpx.Client, up: Upstream) -> None:
    up.put(b"a")
    up.commit()
    up.many(b"new", 250)
    up.commit()
    address = f"/modules/{up.name}/diff/1..2"
    first = page(client, address)
    (later,) = linked(first, "next")
    second = follow(client, address, later)[1]
    # The directory is new, and the one above it has another time only.
    assert len({*names(first), *names(second)}) == 251
    touched = [
        "Directories of which only the time changed: 1" in each.text for each in (first, second)
    ]
    assert sorted(touched) == [False, True]
    assert linked(second, "next") == []


def test_a_commit_is_named_by_serial_or_id(client: httpx.Client, up: Upstream) -> None:
    up.put(b"a")
    head = up.commit().head.commit
    for name in ("1", head, head[:12]):
        assert names(page(client, f"/modules/{up.name}/tree/{name}")) == ["a"]
    module = page(client, f"/modules/{up.name}")
    (row,) = module.one("tbody").all("tr")
    assert names(follow(client, f"/modules/{up.name}", row.all("a")[0])[1]) == ["a"]


@pytest.mark.parametrize(
    "rest",
    [
        *("tree/2", "tree/x", f"tree/{'9' * 5000}", "tree/1/b", "tree/1/a/b", "tree/1/%2e%2e/a"),
        *("tree/1/x%2fy", "tree/1/a%00", f"tree/1/{'a/' * 3000}", "diff/1", "diff/1..9"),
        "diff/1..1?start=99999999",
    ],
)
def test_what_is_not_there_is_told_on_a_page(client: httpx.Client, up: Upstream, rest: str) -> None:
    up.put(b"a")
    up.commit()
    assert page(client, f"/modules/{up.name}/{rest}", 404).one("h1").text


def test_damaged_metadata_are_told_on_a_page(client: httpx.Client, up: Upstream) -> None:
    up.many(b"d", 200)
    up.commit()
    for pack in (up.places.repository / "objects" / "pack").iterdir():
        os.truncate(pack, 100)
    for rest in ("tree/1", "tree/1/d/0", "tree/1?q=x", "diff/1..1"):
        found = page(client, f"/modules/{up.name}/{rest}", 500)
        assert found.one("h1").text == "its metadata cannot be read; the server's log says why"
        assert str(up.root) not in found.text
