"""Probes of real mirrors, by HTTP and rsync: one that serves another byte is named, no other."""

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.support import prepared
from tests.support.answering import QuietHandler, answering
from tests.support.attesting import Attesting, allow, attesting
from tests.support.json_events import faults
from tests.support.keys import key
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import ENVIRONMENT, SECONDS, Site, Upstream, site


class Files(QuietHandler, SimpleHTTPRequestHandler):
    """The files of a folder, which stand for a mirror's."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with mirrors of its own."""
    with site(tmp_path_factory.mktemp("probe") / "site") as place:
        yield place


@pytest.fixture
def up(own: Site) -> Upstream:
    up = own.upstream()
    for name in (b"a", b"d/odd [name]?", b"d/e/f"):
        up.put(name, b"content of " + name)
    up.at(b"link").symlink_to("a")
    up.commit()
    return up


@pytest.fixture
def two(own: Site, up: Upstream, tmp_path: Path) -> Iterator[tuple[Attesting, Attesting]]:
    """The first is served by HTTP, the second by HTTP and by rsync; both are in step."""
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
    with (
        answering(partial(Files, directory=str(folders[0]))) as first,
        answering(partial(Files, directory=str(folders[1]))) as second,
        rsync_daemon({"m": folders[1]}) as daemon,
    ):
        rsync_host = daemon.split("/")[2]
        urls = {1: (f"{first}/",), 2: (f"{second}/", f"{daemon}/m")}
        hosts = {1: (first.split("/")[2],), 2: (second.split("/")[2], rsync_host)}
        mirrors = []
        for number, folder in enumerate(folders, 1):
            allow_all[number] = (f"m-{number}", key(number), hosts[number])
            one = attesting(own, number, up, urls=urls[number])
            one.down.configure(dest=str(folder))
            one.down.dest = folder
            mirrors.append(one)
        allow(own, *allow_all.values(), internal=True)
        for one in mirrors:
            one.down.synced()
        yield mirrors[0], mirrors[1]


allow_all: dict[int, tuple[str, Any, tuple[str, ...]]] = {}


def probe(one: Attesting) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code of `huai-server probe`, and its events by mirror."""
    words = ["--root", str(one.up.root), "probe", one.up.name, "--json"]
    done = prepared.ran(prepared.SERVER, words, ENVIRONMENT, SECONDS)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {fault for each in events for fault in faults("huai-server", each)} == set()
    return done.returncode, {each["mirror"]: each for each in events}


def verdicts(one: Attesting) -> dict[str, tuple[str, bool]]:
    """Return the verdict on each mirror as the API shows it, and True if it is offered."""
    mirrors = one.get(f"/api/v1/modules/{one.up.name}/mirrors")["mirrors"]
    return {each["mirror"]: (each["probe"]["verdict"], each["offered"]) for each in mirrors}


def test_the_mirror_that_serves_another_byte_is_named(two: tuple[Attesting, Attesting]) -> None:
    one, other = two
    code, events = probe(one)
    assert (code, {name: each["verdict"] for name, each in events.items()}) == (
        0,
        {"m-1": "good", "m-2": "good"},
    )
    assert [each["files"] for each in events.values()] == [3, 6]  # at each URL
    place = other.down.dest / "d" / "e" / "f"
    content = place.read_bytes()
    place.write_bytes(content[:-1] + b"X")
    code, events = probe(one)
    assert (code, events["m-1"]["verdict"], events["m-2"]["verdict"]) == (48, "good", "lies")
    assert (events["m-2"]["path"], events["m-2"]["reason"]) == ("d/e/f", "other content")
    assert verdicts(one) == {"m-1": ("good", True), "m-2": ("lies", False)}
    assert "d/e/f" in one.get(f"/modules/{one.up.name}?lang=en")
    assert one.get(f"/api/v1/modules/{one.up.name}/mirrorlist").splitlines() == [
        *one.signed.attestation.urls
    ]
    place.unlink()
    code, events = probe(one)
    assert (code, events["m-2"]["verdict"]) == (47, "stale")  # it was not good before
    place.write_bytes(content)
    assert probe(one)[1]["m-2"]["verdict"] == "good"
    place.unlink()
    assert [probe(one)[0] for _ in range(2)] == [0, 47]
    place.write_bytes(content)
    assert probe(one)[0] == 0
    assert verdicts(one)["m-2"] == ("good", True)


def test_a_mirror_that_goes_on_meanwhile_does_not_lie(two: tuple[Attesting, Attesting]) -> None:
    one, _ = two
    one.up.put(b"a", b"another one", mtime=None)
    one.up.commit()
    (one.down.dest / "a").write_bytes(b"another one")  # and has not attested it yet
    code, events = probe(one)
    assert (code, events["m-1"]["verdict"], events["m-1"]["files"]) == (0, "good", 2)


def test_addresses_of_this_network_are_not_asked(
    two: tuple[Attesting, Attesting], own: Site
) -> None:
    one, _ = two
    allow(own, *allow_all.values())
    code, events = probe(one)
    assert code == 0
    assert {each["verdict"] for each in events.values()} == {"unreachable"}
    assert "an address of this network" in events["m-1"]["reason"]
    assert verdicts(one)["m-1"] == ("unreachable", True)
    # A timer alarms of what lasts.
    assert probe(one)[0] == 10
    quiet = ["--root", str(one.up.root), "probe", one.up.name, "--quiet"]
    done = prepared.ran(prepared.SERVER, quiet, ENVIRONMENT, SECONDS)
    assert done.returncode == 10
    assert "m-1: unreachable: " in done.stderr


def test_a_run_keeps_to_its_bytes(two: tuple[Attesting, Attesting], own: Site) -> None:
    allow(own, *allow_all.values(), internal=True, probe_bytes=30, probe_files=2)
    _, events = probe(two[0])
    assert all(0 < each["files"] <= 2 for each in events.values())
