"""Who holds what: real downstreams attest, and the API, lists and pages of `serve` tell of it."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from tests.support.attesting import Attesting, allow, attesting
from tests.support.html import parse
from tests.support.keys import key
from tests.support.upstream import SECONDS, Site, site

HOSTS = ("a.example", "b.example", "c.example")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with mirrors of its own."""
    with site(tmp_path_factory.mktemp("mirrors") / "site") as found:
        yield found


@pytest.fixture(scope="module")
def three(own: Site) -> list[Attesting]:
    """The first is in step, the second one commit behind, the third holds a part."""
    up = own.upstream()
    hosts = [(host, f"https://{host}/{up.name}", f"rsync://{host}/{up.name}") for host in HOSTS]
    allow(own, *((host, key(n), (host,)) for n, (host, *_) in enumerate(hosts, 1)))
    made = [attesting(own, n, up, urls=tuple(urls)) for n, (_, *urls) in enumerate(hosts, 1)]
    made[2].down.configure(filter=("- b",))
    made[1].down.synced()
    up.put(b"b", b"second")
    up.commit()
    for each in (made[0], made[2]):
        each.down.synced()
    return made


def names(three: list[Attesting], path: str) -> list[str]:
    return [each["mirror"] for each in three[0].get(path)["mirrors"]]


def test_the_freshest_comes_first_and_says_since_when(three: list[Attesting]) -> None:
    one = three[0]
    module = one.up.name
    told = one.get(f"/api/v1/modules/{module}/mirrors")
    assert told["serial"] == 2
    first, third, second = told["mirrors"]
    assert [each["mirror"] for each in (first, second, third)] == [*HOSTS]
    said = one.signed.said
    assert first == {
        "mirror": HOSTS[0],
        "serial": 2,
        "commit": said.commit,
        "time": said.time,
        "since": said.time,
        "lag": {"now": 0, "p50": 0, "p90": 0, "p99": 0},
        "partial": False,
        "offered": True,
        "probe": None,
        "urls": [*said.urls],
    }
    assert (second["serial"], second["offered"]) == (1, True)
    assert (third["partial"], third["offered"]) == (True, False)
    (in_all,) = (each for each in one.get("/api/v1/mirrors")["modules"] if each["module"] == module)
    assert [each["mirror"] for each in in_all["mirrors"]] == [
        each["mirror"] for each in told["mirrors"]
    ]


def test_lists_for_other_programs(three: list[Attesting]) -> None:
    one, two, _ = three
    base, urls = f"/api/v1/modules/{one.up.name}", [*one.signed.said.urls, *two.signed.said.urls]
    assert one.get(f"{base}/mirrorlist").split("\n") == [*urls, ""]
    lines = [line.split(" ") for line in one.get(f"{base}/mirmon").splitlines()]
    assert {len(line) for line in lines} == {7}
    assert lines[0][0] == urls[0]
    assert lines[0][2:5] == ["ok", str(one.signed.said.time), "s"]
    document = ET.fromstring(one.get(f"{base}/metalink/a"))  # noqa: S314 - our own server's
    named = [each.text for each in document.iter("{urn:ietf:params:xml:ns:metalink}url")]
    assert named[1:] == [f"{url}/a" for url in urls]


def test_a_mirror_as_a_site(three: list[Attesting]) -> None:
    one, _, third = three
    said, module = one.signed.said, one.up.name
    found = one.get(f"/api/v1/mirrors/{HOSTS[0]}/mirrorz.json")
    assert found["site"] == {"url": f"https://{HOSTS[0]}", "abbr": HOSTS[0]}
    (mirror,) = found["mirrors"]
    assert (mirror["cname"], mirror["url"], mirror["size"]) == (module, said.urls[0], "11")
    assert mirror["status"] == f"S{said.time}"
    (job,) = one.get(f"/api/v1/mirrors/{HOSTS[2]}/tunasync.json")
    assert (job["name"], job["last_update_ts"]) == (module, third.signed.said.time)
    with pytest.raises(urllib.error.HTTPError):
        one.get("/api/v1/mirrors/nope/tunasync.json")


def test_whoever_has_an_answer_is_told_so(three: list[Attesting]) -> None:
    url = f"{three[0].place.url}/api/v1/modules/{three[0].up.name}/mirrorlist"
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 (our own)
        etag = answer.headers["etag"]
    again = urllib.request.Request(url, headers={"If-None-Match": etag})  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(again, timeout=SECONDS)  # noqa: S310
    assert caught.value.code == 304
    caught.value.close()


def test_the_page_has_a_table_of_them(three: list[Attesting]) -> None:
    for language, title in (("en", "Mirrors"), ("zh", "镜像")):
        found = parse(three[0].get(f"/modules/{three[0].up.name}?lang={language}"))
        assert title in [each.text for each in found.all("h2")]
    table = parse(three[0].get(f"/modules/{three[0].up.name}?lang=en")).all("tbody")[0]
    assert [row.one("th").text for row in table.all("tr")] == [HOSTS[0], HOSTS[2], HOSTS[1]]
    links = [each["href"] for each in table.all("a")]
    assert links == [
        f"https://{host}/{three[0].up.name}" for host in (HOSTS[0], HOSTS[2], HOSTS[1])
    ]


def test_who_is_too_far_behind_is_offered_to_nobody(three: list[Attesting], own: Site) -> None:
    tables = [(host, key(n), (host,)) for n, host in enumerate(HOSTS, 1)]
    path = f"/api/v1/modules/{three[0].up.name}/mirrorlist"
    both = three[0].get(path)
    allow(own, *tables, max_lag="0")
    assert three[0].get(path).splitlines() == [*three[0].signed.said.urls]
    allow(own, *tables[1:])  # revoked
    assert names(three, f"/api/v1/modules/{three[0].up.name}/mirrors") == [HOSTS[2], HOSTS[1]]
    allow(own, *tables)
    assert three[0].get(path) == both


def test_mirrors_of_a_private_module_are_private(three: list[Attesting]) -> None:
    one, module = three[0], three[0].up.name
    one.up.change(access="private")
    for path in ("mirrors", "mirrorlist", "mirmon"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            one.get(f"/api/v1/modules/{module}/{path}")
        caught.value.close()
        assert caught.value.code == 401
    told = one.get("/api/v1/mirrors")["modules"]
    assert module not in [each["module"] for each in told]
    assert one.post(one.again(time=one.signed.said.time + 1))[0] == 401
    with pytest.raises(urllib.error.HTTPError) as caught:
        one.get(f"/api/v1/mirrors/{HOSTS[0]}/tunasync.json")
    caught.value.close()
    assert caught.value.code == 404
    one.up.change(access="public")
