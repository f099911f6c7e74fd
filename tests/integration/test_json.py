"""Every line of `huai-client --json` is as docs/JSON.md says, and all it says is printed."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from docs.man.pages import command_line
from huai_client.config.hooks import Hooks
from huai_client.config.proofs import Proof
from tests.support import json_events
from tests.support.attesting import attesting
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import SECONDS, Downstream, Ended, Site, Upstream, ended
from tests.support.weak_network import silent

Lines = list[dict[str, Any]]
PROGRAM = "huai-client"
PATHS = ("path", "source")


def lines(done: Ended, *codes: int) -> Lines:
    """What a run printed, which ended with one of `codes` (default 0)."""
    assert done.code in (codes or (0,)), done
    return [json.loads(line) for line in done.out.splitlines()]


def grown(place: Site) -> Upstream:
    """A module with something of every kind, and an rpm repository."""
    up = place.upstream()
    up.many(b"folder", 5)
    up.put(b"odd/\xff\n\\", b"odd")
    up.put(b"repo/repodata/repomd.xml", b"<repomd/>")
    up.put(b"repo/a.rpm", b"a" * 5000)
    os.symlink("folder", up.at(b"link"))
    up.at(b"hard").hardlink_to(up.at(b"folder/1"))
    up.commit()
    return up


def changed(up: Upstream) -> None:
    """A commit that adds, changes, touches, moves and removes."""
    up.put(b"added", b"added")
    up.put(b"repo/a.rpm", b"b" * 5000)
    up.put(b"repo/repodata/repomd.xml", b"<repomd> </repomd>")
    up.at(b"folder/2").chmod(0o600)
    up.at(b"folder/3").unlink()
    up.at(b"odd").rename(up.at(b"moved"))
    up.commit()


def life(place: Site, folder: Path) -> Iterator[Lines]:
    """A module from its adding to its removal."""
    up = grown(place)
    down = place.downstream(up)
    yield lines(down.run("remove", down.name, "--json"))
    yield lines(down.run("add", down.name, place.url, str(folder), "--json"))
    down.dest = folder
    yield lines(down.run("modules", place.url, "--json"))
    yield lines(down.run("status", "--json"))
    yield lines(down.run("plan", down.name, "--json"))
    yield lines(down.run("plan", down.name, "--filter", "- *.rpm", "--json"))
    yield lines(down.run("sync", down.name, "--json"))
    yield lines(down.run("sync", down.name, "--json"))
    yield lines(down.run("doctor", "--json"))
    changed(up)
    down.configure(delete_after="1h")
    (down.dest / "unknown").write_text("nobody knows")
    yield lines(down.run("plan", down.name, "--json", "--adopt"))
    yield lines(down.run("why", down.name, "added", "--json"))
    yield lines(down.run("sync", down.name, "--json", "--adopt"))
    yield lines(down.run("plan", down.name, "--json"))
    yield lines(down.run("status", "--json"))
    yield from explained(down)
    yield from repaired(down)
    yield lines(down.run("status", "--parts", "--json"))


def undone(place: Site, _: Path) -> Iterator[Lines]:
    """A sync that is taken back."""
    up = grown(place)
    down = place.downstream(up, trash="7d", hooks=Hooks(after="/bin/true"))
    yield lines(down.run("sync", down.name, "--json"))
    yield lines(down.run("verify", down.name, "--json"))
    yield lines(down.run("why", down.name, "folder", "--json"))
    changed(up)
    yield lines(down.run("sync", down.name, "--json"))
    yield lines(down.run("status", "--json"))
    yield lines(down.run("undo", down.name, "--json"))
    yield lines(down.run("status", "--json"))
    yield lines(down.run("sync", down.name, "--json"))


def explained(down: Downstream) -> Iterator[Lines]:
    yield lines(down.run("log", down.name, "--json"))
    yield lines(down.run("log", down.name, "repo/a.rpm", "--json"))
    yield lines(down.run("diff", down.name, "previous..applied", "--json"))
    for path in ("repo/repodata/repomd.xml", "folder/3", "link", "."):
        yield lines(down.run("why", down.name, path, "--json"))
    yield lines(down.run("why", down.name, "nonesuch", "--json"), 1)


def repaired(down: Downstream) -> Iterator[Lines]:
    """Damage of every kind, found and repaired."""
    (down.dest / "added").write_text("edited")
    (down.dest / "folder" / "4").unlink()
    (down.dest / "folder" / "0").chmod(0o640)
    yield lines(down.run("verify", down.name, "--content", "--json"), 47)
    yield lines(down.run("verify", down.name, "--repair", "--json"), 0, 47)


def filtered(place: Site, _: Path) -> Iterator[Lines]:
    """A part of a module."""
    down = place.downstream(grown(place), filter=("- *.rpm",))
    yield lines(down.run("sync", down.name, "--json"))
    yield lines(down.run("why", down.name, "repo/a.rpm", "--json"))


def refusals(place: Site, _: Path) -> Iterator[Lines]:
    """Errors of all sorts."""
    down = place.downstream(grown(place))
    yield lines(down.run("sync", "nonesuch", "--json"), 45)
    yield lines(down.run("sync", "--json"), 1)
    yield lines(down.run("sync", down.name, "--no-such-option", "--json"), 1)
    yield lines(down.run("completion", "bash", "--json"))
    down.configure(dest=str(down.dest / "missing"))
    yield lines(ended(down.spawn("sync", "--all", "--json")), 52)


def trouble(place: Site, _: Path) -> Iterator[Lines]:
    """Content that is not there, or not right, and upstreams that do not answer."""
    up = grown(place)
    down = place.downstream(up, url=["http://127.0.0.1:9", place.url])
    with silent() as nobody:
        dead = place.downstream(
            up, content_urls=("rsync://127.0.0.1:9/none", f"rsync://{nobody}/none")
        )
        yield lines(dead.run("sync", dead.name, "--max-time", "1s", "--json"), 30)
    up.at(b"folder/3").unlink()
    stamp = up.at(b"folder/2").stat().st_mtime_ns
    up.put(b"folder/2", b"FOLDER/2 F", mtime=stamp)
    yield lines(down.run("sync", down.name, "--json"), 24, 48)
    yield lines(down.run("status", "--json"))


def full(place: Site, _: Path) -> Iterator[Lines]:
    """A daemon that has one place, which somebody else holds for a while."""
    up = place.upstream()
    up.many(b"folder", 2, 2000)
    up.commit()
    with rsync_daemon({"one": up.tree}, max_connections="1") as url:
        down = place.downstream(up, content_urls=(f"{url}/one",))
        host, port = url.removeprefix("rsync://").split(":")
        with socket.create_connection((host, int(port)), SECONDS) as other:
            other.sendall(b"@RSYNCD: 31.0\none\n")
            other.recv(1000)
            process = down.spawn("sync", down.name, "--json")
            assert process.stdout is not None
            told = ""
            while "transfer-waiting" not in told:
                line = process.stdout.readline()
                assert line, told
                told += line
        done = ended(process)
        yield lines(done._replace(out=told + done.out))


def unproved(place: Site, _: Path) -> Iterator[Lines]:
    """A repository of packages whose proof fails."""
    up = place.upstream()
    up.put(b"dists/s/Release", b"1")
    up.commit()
    failing = Proof(command="/bin/false")
    down = place.downstream(up, proofs={"apt": failing})
    yield lines(down.run("sync", down.name, "--json"), 58)


def watched(place: Site, _: Path) -> Iterator[Lines]:
    """An upstream that tells of a commit, and one that does not answer."""
    up = grown(place)
    down = place.downstream(up, url=["http://127.0.0.1:9", place.url])
    process = down.spawn("watch", "--json")
    assert process.stdout is not None
    told = ""
    while '"ended"' not in told or '"told"' not in told:
        line = process.stdout.readline()
        assert line, told
        told += line
    process.terminate()
    done = ended(process)
    yield lines(done._replace(out=told + done.out), 143)


def attested(place: Site, _: Path) -> Iterator[Lines]:
    """A tree that is attested, to nobody."""
    down = attesting(place, send=False).down
    yield lines(down.run("sync", down.name, "--json"))


SCENES = (life, undone, filtered, refusals, trouble, full, unproved, watched, attested)


def test_every_line_is_as_described_and_all_is_printed(place: Site, tmp_path: Path) -> None:
    """One test: what the scenes print is long in the making."""
    seen: Lines = []
    for scene in SCENES:
        (folder := tmp_path / scene.__name__).mkdir()
        seen += [event for printed in scene(place, folder) for event in printed]
    assert sorted({fault for event in seen for fault in json_events.faults(PROGRAM, event)}) == []
    assert set(json_events.events(PROGRAM)) - {event["type"] for event in seen} == set()
    printed = {name for event in seen for name in json_events.occurring(event)}
    assert json_events.described(PROGRAM) - printed == set()
    for kind in ("operation", "file-arrived", "delayed", "change"):  # no byte of a path is lost
        paths = {event.get(name) or "" for event in seen if event["type"] == kind for name in PATHS}
        assert b"odd/\xff\n\\" in {path.encode("utf-8", "surrogateescape") for path in paths}


def test_every_command_takes_json() -> None:
    group = command_line(PROGRAM)
    assert isinstance(group, click.Group)
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        assert any("--json" in parameter.opts for parameter in command.params), name
