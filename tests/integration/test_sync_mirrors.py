"""Mirrors that the upstream names: asked for what it does not have, proved, and shown."""

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest

from huai_client.metadata.attested_mirrors import attested_urls
from huai_client.metadata.http import MetadataUrl
from huai_client.run.options import NEVER
from tests.support.attesting import Attesting, allow, attesting
from tests.support.html import parse
from tests.support.keys import key
from tests.support.nginx import Nginx, nginx
from tests.support.upstream import SECONDS, T0, Site, Upstream, assert_equal, site
from tests.support.weak_network import silent


def create_upstream(place: Site, other: Nginx, **settings: object) -> Upstream:
    """Create a module with a mirror; the daemon has none of its files."""
    (place.folder / "trees/empty").mkdir(exist_ok=True)
    up = place.upstream(
        content_urls=(f"{place.content_url}/empty",), mirrors=(f"{other.url}/tree",), **settings
    )
    up.many(b"d", 30)
    up.put(b"large", os.urandom(3 << 20))
    up.commit()
    return up


def copy_tree(up: Upstream, folder: Path) -> Path:
    """Copy the tree to the mirror."""
    copy = folder / "tree"
    shutil.copytree(up.tree, copy)
    return copy


def test_a_mirror_has_what_the_upstream_cannot_give(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        copy_tree(up, tmp_path / "other")
        assert place.downstream(up).sync().code == 23
        assert other.requests == []
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        assert len(other.requests) == 31


def test_what_the_upstream_has_comes_from_there(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = place.upstream(mirrors=(f"{other.url}/tree",))
        up.many(b"d", 30)
        up.commit()
        copy_tree(up, tmp_path / "other")
        up.at(b"d/3").unlink()
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert down.dest.joinpath("d/3").read_bytes().startswith(b"d/3 ")
        assert [line.rpartition(" ")[2] for line in other.requests] == ["/tree/d/3"]


def test_a_mirror_that_lies_or_lags_is_no_harm(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        copy = copy_tree(up, tmp_path / "other")
        (copy / "d/1").unlink()
        lie = bytes(len(up.at(b"large").read_bytes()))
        (copy / "large").write_bytes(lie)
        os.utime(copy / "large", ns=(T0, T0))
        down = place.downstream(up, mirrors="auto")
        assert down.sync().code != 0
        assert not down.dest.joinpath("large").exists()
        assert not down.dest.joinpath("d/1").exists()


def test_a_mirror_is_not_asked_for_what_no_digest_proves(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other") as other:
        up = create_upstream(place, other, volatile=("/d/2",))
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert down.dest.joinpath("d/1").exists()
        assert not down.dest.joinpath("d/2").exists()
        assert not any(line.endswith("/d/2") for line in other.requests)
        up.change(digest="off")
        up.put(b"d/5", b"changed", mtime=T0 + 10**9)
        up.commit()
        shutil.rmtree(tmp_path / "other/tree")
        copy_tree(up, tmp_path / "other")
        before = len(other.requests)
        assert place.downstream(up, mirrors="auto").sync().code != 0
        assert len(other.requests) == before


def test_the_fastest_mirror_is_asked_first(place: Site, tmp_path: Path) -> None:
    with nginx(tmp_path / "other", location="limit_rate 64k;") as slow, nginx(tmp_path) as fast:
        up = create_upstream(place, slow)
        up.change(mirrors=(f"{slow.url}/tree", f"{fast.url}/other/tree"))
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        (sampled,) = slow.requests
        assert '"bytes=0-262143"' in sampled
        assert len(fast.requests) == 32
        rows = json.loads((down.root / "speeds.json").read_text())
        rates = {service: rate for service, _, rate, _ in rows}
        assert rates[fast.url] > rates[slow.url] > 0
        up.put(b"d/new", b"new", mtime=T0 + 10**9)
        up.commit()
        (tmp_path / "other/tree/d/new").write_bytes(b"new")
        down.synced()
        assert len(slow.requests) == 1, "what is known is not measured again"


def test_a_mirror_that_is_silent_holds_up_for_seconds(place: Site, tmp_path: Path) -> None:
    with silent() as nobody, nginx(tmp_path / "other") as other:
        up = create_upstream(place, other)
        up.change(mirrors=(f"http://{nobody}/tree", f"{other.url}/tree"))
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)


def test_blocks_come_from_the_upstream_and_its_mirrors_at_once(place: Site, tmp_path: Path) -> None:
    content = os.urandom(40 << 20)
    slowly = "limit_rate 4m;"
    (tmp_path / "other").mkdir()
    with (
        nginx(tmp_path / "other", location=slowly) as other,
        nginx(place.folder / "trees", location=slowly) as web,
    ):
        up = place.upstream(mirrors=(f"{other.url}/tree",), block_index=1 << 20)
        up.change(content_urls=(f"{web.url}/{up.name}",))
        up.put(b"image", content)
        up.commit()
        copy_tree(up, tmp_path / "other")
        down = place.downstream(up, mirrors="auto")
        down.synced()
        assert_equal(up, down)
        ranges = [line.split('"')[1] for line in (*other.requests, *web.requests)]
        assert sorted(ranges) == sorted(
            f"bytes={at}-{at + (8 << 20) - 1}" for at in range(0, len(content), 8 << 20)
        )
        assert other.requests
        own = (f"{web.url}/{up.name}",)
        before = len(other.requests)
        place.downstream(up, mirrors="auto", content_urls=own).synced()
        assert len(other.requests) == before, "those of client.toml come first"


def test_content_comes_from_the_mirrors_that_attested_it(place: Site, tmp_path: Path) -> None:
    """Two real ones; what no digest proves comes from the upstream."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with nginx(folders[0]) as one, nginx(folders[1]) as two:
        webs = [one, two]
        hosts = [web.url.removeprefix("http://") for web in webs]
        up = place.upstream(volatile=("/stamp",))
        up.many(b"d", 30)
        up.put(b"large", os.urandom(3 << 20))
        up.put(b"stamp", b"proved by no digest")
        up.commit()
        allow(place, *((f"mirror{n}", key(n), (host,)) for n, host in enumerate(hosts, 1)))
        mirrors = [
            attesting(place, n, up, urls=(f"{web.url}/tree",)) for n, web in enumerate(webs, 1)
        ]
        for folder, mirror in zip(folders, mirrors, strict=True):
            mirror.down.synced()
            (folder / "tree").symlink_to(mirror.down.dest)
        down = place.downstream(up, mirrors="attested")
        down.synced()
        assert_equal(up, down)
        fetched = [line.rpartition(" ")[2] for web in webs for line in web.requests]
        assert {f"/tree/d/{number}" for number in range(30)} <= set(fetched)
        assert "/tree/large" in fetched
        assert "/tree/stamp" not in fetched


def test_without_a_list_of_mirrors_the_upstream_is_asked(place: Site) -> None:
    up = place.upstream()
    up.many(b"d", 3)
    up.commit()
    down = place.downstream(up, mirrors="attested")
    down.synced()
    assert_equal(up, down)
    assert attested_urls([MetadataUrl(f"{place.url}/absent")], "none", 1, NEVER) == []


HOSTS = ("a.example", "b.example", "c.example")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with mirrors of its own."""
    with site(tmp_path_factory.mktemp("mirrors") / "site") as place:
        yield place


@pytest.fixture(scope="module")
def three(own: Site) -> list[Attesting]:
    """The first is in step, the second one commit behind, the third holds a part."""
    up = own.upstream()
    hosts = [(host, f"https://{host}/{up.name}", f"rsync://{host}/{up.name}") for host in HOSTS]
    allow(own, *((host, key(n), (host,)) for n, (host, *_) in enumerate(hosts, 1)))
    mirrors = [attesting(own, n, up, urls=tuple(urls)) for n, (_, *urls) in enumerate(hosts, 1)]
    mirrors[2].down.configure(filter=("- b",))
    mirrors[1].down.synced()
    up.put(b"b", b"second")
    up.commit()
    for number in (0, 2):
        mirrors[number].down.synced()
    return mirrors


def refusal(one: Attesting, path: str) -> int:
    """Return the status of a request that fails."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        one.get(path)
    caught.value.close()
    return caught.value.code


def names(three: list[Attesting], path: str) -> list[str]:
    return [each["mirror"] for each in three[0].get(path)["mirrors"]]


def test_the_freshest_comes_first_and_says_since_when(three: list[Attesting]) -> None:
    one = three[0]
    module = one.up.name
    answer = one.get(f"/api/v1/modules/{module}/mirrors")
    assert answer["serial"] == 2
    first, third, second = answer["mirrors"]
    assert [mirror["mirror"] for mirror in (first, second, third)] == [*HOSTS]
    state = one.signed.attestation
    assert first == {
        "mirror": HOSTS[0],
        "serial": 2,
        "commit": state.commit,
        "urls": [*state.urls],
        "time": state.time,
        "since": state.time,
        "lag": {"now": 0, "p50": 0, "p90": 0, "p99": 0},
        "partial": False,
        "offered": True,
        "probe": None,
        "country": None,
        "sponsor": None,
    }
    assert (second["serial"], second["offered"]) == (1, True)
    assert (third["partial"], third["offered"]) == (True, False)
    (in_all,) = (each for each in one.get("/api/v1/mirrors")["modules"] if each["module"] == module)
    order = [HOSTS[0], HOSTS[2], HOSTS[1]]
    assert [mirror["mirror"] for mirror in in_all["mirrors"]] == order


def test_lists_for_other_programs(three: list[Attesting]) -> None:
    one, two, _ = three
    base = f"/api/v1/modules/{one.up.name}"
    urls = [*one.signed.attestation.urls, *two.signed.attestation.urls]
    assert one.get(f"{base}/mirrorlist").split("\n") == [*urls, ""]
    lines = [line.split(" ") for line in one.get(f"{base}/mirmon").splitlines()]
    assert {len(line) for line in lines} == {7}
    assert lines[0][0] == urls[0]
    assert lines[0][2:5] == ["ok", str(one.signed.attestation.time), "s"]
    document = ET.fromstring(one.get(f"{base}/metalink/a"))  # noqa: S314 - our own server's
    urls_of_metalink = [each.text for each in document.iter("{urn:ietf:params:xml:ns:metalink}url")]
    assert urls_of_metalink[1:] == [f"{url}/a" for url in urls]


def test_a_mirror_as_a_site(three: list[Attesting]) -> None:
    one, _, third = three
    state, module = one.signed.attestation, one.up.name
    document = one.get(f"/api/v1/mirrors/{HOSTS[0]}/mirrorz.json")
    assert document["site"] == {"url": f"https://{HOSTS[0]}", "abbr": HOSTS[0]}
    (mirror,) = document["mirrors"]
    assert (mirror["cname"], mirror["url"], mirror["size"]) == (module, state.urls[0], "11")
    assert mirror["status"] == f"S{state.time}"
    (job,) = one.get(f"/api/v1/mirrors/{HOSTS[2]}/tunasync.json")
    assert (job["name"], job["last_update_ts"]) == (module, third.signed.attestation.time)
    assert refusal(one, "/api/v1/mirrors/nope/tunasync.json") == 404


def test_an_unchanged_list_is_not_sent_again(three: list[Attesting]) -> None:
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
        page = parse(three[0].get(f"/modules/{three[0].up.name}?lang={language}"))
        assert title in [each.text for each in page.all("h2")]
    table = parse(three[0].get(f"/modules/{three[0].up.name}?lang=en")).all("tbody")[0]
    assert [row.one("th").text for row in table.all("tr")] == [HOSTS[0], HOSTS[2], HOSTS[1]]
    links = [each["href"] for each in table.all("a")]
    assert links == [
        f"https://{host}/{three[0].up.name}" for host in (HOSTS[0], HOSTS[2], HOSTS[1])
    ]


def test_a_mirror_that_is_too_far_behind_is_not_offered(three: list[Attesting], own: Site) -> None:
    tables = [(host, key(n), (host,)) for n, host in enumerate(HOSTS, 1)]
    path = f"/api/v1/modules/{three[0].up.name}/mirrorlist"
    whole_list = three[0].get(path)
    allow(own, *tables, max_lag="0")
    assert three[0].get(path).splitlines() == [*three[0].signed.attestation.urls]
    allow(own, *tables[1:])  # revoked
    assert names(three, f"/api/v1/modules/{three[0].up.name}/mirrors") == [HOSTS[2], HOSTS[1]]
    allow(own, *tables)
    assert three[0].get(path) == whole_list


def test_country_and_sponsor_are_where_mirrors_are_chosen(
    three: list[Attesting], own: Site
) -> None:
    one, module = three[0], three[0].up.name
    tables = [(host, key(n), (host,)) for n, host in enumerate(HOSTS, 1)]
    sponsor = {"name": "<b>Bits & Co</b>", "url": "https://sponsor.example/?a=1&b=2"}
    allow(own, *tables, keys={HOSTS[0]: {"country": "DE", "sponsor": sponsor}})
    first, second = one.get(f"/api/v1/modules/{module}/mirrors")["mirrors"][:2]
    assert (first["country"], first["sponsor"]) == ("DE", sponsor)
    assert (second["country"], second["sponsor"]) == (None, None)
    mirrorlist = f"/api/v1/modules/{module}/mirrorlist"
    assert one.get(f"{mirrorlist}?country=de").splitlines() == [*one.signed.attestation.urls]
    assert one.get(f"{mirrorlist}?country=FR") == ""
    document = ET.fromstring(one.get(f"/api/v1/modules/{module}/metalink/a"))  # noqa: S314 - our own server's
    urls = [*document.iter("{urn:ietf:params:xml:ns:metalink}url")]
    own_urls = {f"{url}/a" for url in one.signed.attestation.urls}
    assert {each.text for each in urls if each.get("location") == "de"} == own_urls
    assert len(urls) > len([each for each in urls if each.get("location")])
    for path in ("/mirrors", f"/modules/{module}"):
        page = parse(one.get(path))
        (link,) = (each for each in page.all("a") if each["href"] == sponsor["url"])
        assert (link.text, link["rel"]) == (sponsor["name"], "nofollow noopener")
        assert "DE" in page.one("main").text
    allow(own, *tables)


def test_a_file_names_its_mirrors_and_a_download_leads_to_one(
    three: list[Attesting], own: Site
) -> None:
    one, module = three[0], three[0].up.name
    tables = [(host, key(n), (host,)) for n, host in enumerate(HOSTS, 1)]
    allow(own, *tables, keys={HOSTS[1]: {"country": "FR"}})

    def mirrors(path: str) -> list[str]:
        """Return the mirrors that the page of a file names."""
        page = parse(one.get(f"/modules/{module}/tree/latest/{path}"))
        rows = page.one("tbody").all("tr") if "Mirrors that hold it" in page.text else []
        return [row.one("th").one("bdi").text for row in rows]

    def target(address: str) -> tuple[int, str]:
        answer = httpx.get(f"{own.url}/modules/{module}/download/{address}")
        return answer.status_code, answer.headers.get("location", "")

    # The second mirror has the commit before, the third only a part.
    assert (mirrors("a"), mirrors("b")) == ([HOSTS[0], HOSTS[1]], [HOSTS[0]])
    assert target("latest/a") == (302, f"https://{HOSTS[0]}/{module}/a")
    assert target("latest/a?country=fr") == (302, f"https://{HOSTS[1]}/{module}/a")
    assert target("latest/b?country=fr") == (302, f"https://{HOSTS[0]}/{module}/b")
    allow(own, *tables, max_lag="0")
    assert target("latest/a?country=fr") == (302, f"https://{HOSTS[0]}/{module}/a")
    allow(own, *tables[1:], max_lag="0")
    assert mirrors("a") == [HOSTS[1]]
    assert target("latest/a")[0] == 404
    allow(own, *tables)


def test_mirrors_of_a_private_module_are_private(three: list[Attesting]) -> None:
    one, module = three[0], three[0].up.name
    one.up.change(access="private")
    for path in ("mirrors", "mirrorlist", "mirmon"):
        assert refusal(one, f"/api/v1/modules/{module}/{path}") == 401
    modules = one.get("/api/v1/mirrors")["modules"]
    assert module not in [row["module"] for row in modules]
    assert one.post(one.again(time=one.signed.attestation.time + 1))[0] == 401
    assert refusal(one, f"/api/v1/mirrors/{HOSTS[0]}/tunasync.json") == 404
    one.up.change(access="public")


def test_the_page_of_all_mirrors_has_a_row_for_each(three: list[Attesting]) -> None:
    one = three[0]
    page = parse(one.get("/mirrors"))
    columns = [each.text for each in page.one("thead").all("th")]
    place = columns.index(one.up.name)
    cells = {
        row.one("th").one("bdi").text: [each.text for each in row.all("th", "td")]
        for row in page.one("tbody").all("tr")
    }
    assert [cells[host][0] for host in HOSTS] == [f"{host} https rsync" for host in HOSTS]
    assert all("half of the time " in cells[host][-2] for host in HOSTS)
    assert [cells[host][place] for host in HOSTS] == [
        *("in step", cells[HOSTS[1]][place], "in step (a part of it)"),
    ]
    assert "in step" not in cells[HOSTS[1]][place]
    holders = [each.text for each in page.one("tfoot").all("td")][place - 1]
    assert holders.startswith("2/3 half within ")
    assert "No mirror" in parse(one.get("/mirrors?column=99&start=99")).text
    assert "#rollout" in page.one("tfoot").all("a")[place - 1]["href"]
    rollouts = parse(one.get(f"/mirrors?module={one.up.name}")).all("table")[1].one("tbody")
    serials = [each.text for each in rollouts.all("th")]
    assert serials == [str(serial) for serial in range(len(serials), 0, -1)] != []
    assert three[0].get("/").count(">Mirrors<") == 1


def test_metrics_have_the_lag_of_each_mirror(three: list[Attesting]) -> None:
    one = three[0]
    text = one.get("/metrics")
    for host, offered in zip(HOSTS, (1, 1, 0), strict=True):
        labels = f'{{mirror="{host}",module="{one.up.name}"}}'
        (lag,) = re.findall(re.escape(f"huai_mirror_lag_seconds{labels} ") + r"([\d.]+)", text)
        assert (float(lag) > 0) == (host == HOSTS[1])
        assert f"huai_mirror_offered{labels} {offered}.0" in text
    assert "huai_probe_trusted{" not in text
