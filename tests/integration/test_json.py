"""Every line of `huai-client --json` is as docs/JSON.md says, and all it says is printed."""

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click

from docs.man.pages import command_line
from huai_client.config.hooks import Hooks, Proof
from tests.support import json_events
from tests.support.attesting import attesting
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import SECONDS, Downstream, Ended, Site, Upstream, ended
from tests.support.weak_network import silent

Lines = list[dict[str, Any]]
PROGRAM = "huai-client"
PATHS = ("path", "source")
NAMED = {"sync", "plan", "why", "log", "diff", "verify", "undo", "remove"}
"""Commands that take the name of the module."""


def run(down: Downstream, *commands: str, codes: Collection[int] = (0,)) -> Iterator[Lines]:
    """Yield the lines of each command, which has to end with one of `codes`."""
    for words in map(shlex.split, commands):
        name = [down.name] if words[0] in NAMED else []
        yield parse(down.run(words[0], *name, *words[1:], "--json"), codes)


def parse(ended: Ended, codes: Collection[int] = (0,)) -> Lines:
    assert ended.code in codes, ended
    return [json.loads(line) for line in ended.out.splitlines()]


def read_until(process: subprocess.Popen[str], *words: str) -> str:
    """Return the output of a process up to the line with the last of some words."""
    assert process.stdout is not None
    output = ""
    while not all(word in output for word in words):
        line = process.stdout.readline()
        assert line, output
        output += line
    return output


def grown(place: Site) -> Upstream:
    """A module with an entry of every kind, and an rpm repository."""
    up = place.upstream()
    up.many(b"folder", 5)
    up.put(b"odd/\xff\n\\", b"odd")
    up.put(b"repo/repodata/repomd.xml", b"<repomd/>")
    up.put(b"repo/a.rpm", b"a" * 5000)
    os.symlink("folder", up.at(b"link"))
    up.at(b"hard").hardlink_to(up.at(b"folder/1"))
    up.commit()
    return up


def change(up: Upstream) -> None:
    """Add, change, touch, move and remove, in one commit."""
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
    yield from run(down, "remove", f"add {down.name} {place.url} {folder}")
    down.dest = folder
    yield from run(down, f"modules {place.url}", "status", "plan", "plan --filter '- *.rpm'")
    yield from run(down, "sync", "sync", "doctor")
    change(up)
    down.configure(delete_after="1h")
    (down.dest / "unknown").write_text("an extraneous file")
    yield from run(down, "plan --adopt", "why added", "sync --adopt", "plan", "status")
    yield from run(down, "log", "log repo/a.rpm", "diff previous..applied")
    yield from run(down, "why repo/repodata/repomd.xml", "why folder/3", "why link", "why .")
    yield from run(down, "why nonesuch", codes=[1])
    (down.dest / "added").write_text("edited")
    (down.dest / "folder" / "4").unlink()
    (down.dest / "folder" / "0").chmod(0o640)
    yield from run(down, "verify --content", codes=[47])
    yield from run(down, "verify --repair", codes=[0, 47])
    yield from run(down, "status --parts")


def undone(place: Site, _: Path) -> Iterator[Lines]:
    """A sync that is taken back."""
    up = grown(place)
    down = place.downstream(up, trash="7d", hooks=Hooks(after="/bin/true"))
    yield from run(down, "sync", "verify", "why folder")
    change(up)
    yield from run(down, "sync", "status", "undo", "status", "sync")


def filtered(place: Site, _: Path) -> Iterator[Lines]:
    """A part of a module."""
    down = place.downstream(grown(place), filter=("- *.rpm",))
    yield from run(down, "sync", "why repo/a.rpm")


def notified(down: Downstream) -> Iterator[Lines]:
    """A message that cannot be delivered, to recipients of all kinds."""
    file = down.root / "client.toml"
    text = file.read_text()
    notify = "mail = {to = 'a@x.example', port = 9}, web = {url = 'http://127.0.0.1:9'}"
    file.write_text(f"notify = {{{notify}, command = '/bin/false'}}\n{text}")
    yield from run(down, "notify", codes=[10])
    file.write_text(text)


def refusals(place: Site, _: Path) -> Iterator[Lines]:
    """Errors of all sorts."""
    down = place.downstream(grown(place))
    yield parse(down.run("sync", "nonesuch", "--json"), [45])
    yield parse(down.run("sync", "--json"), [1])
    yield from run(down, "sync --no-such-option", codes=[1])
    yield from run(down, "completion bash")
    yield from notified(down)
    down.configure(dest=str(down.dest / "missing"))
    yield parse(ended(down.spawn("sync", "--all", "--json")), [52])


def trouble(place: Site, _: Path) -> Iterator[Lines]:
    """Content that is missing or wrong, and upstreams that do not answer."""
    up = grown(place)
    down = place.downstream(up, url=["http://127.0.0.1:9", place.url])
    with silent() as host:
        urls = ("rsync://127.0.0.1:9/none", f"rsync://{host}/none")
        yield from run(place.downstream(up, content_urls=urls), "sync --max-time 1s", codes=[30])
    up.at(b"folder/3").unlink()
    stamp = up.at(b"folder/2").stat().st_mtime_ns
    up.put(b"folder/2", b"FOLDER/2 F", mtime=stamp)
    yield from run(down, "sync", codes=[24, 48])
    yield from run(down, "status")


def full(place: Site, _: Path) -> Iterator[Lines]:
    """A daemon for one client at a time, while another one is connected."""
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
            output = read_until(process, "transfer-waiting")
        done = ended(process)
        yield parse(done._replace(out=output + done.out))


def unproved(place: Site, _: Path) -> Iterator[Lines]:
    """A repository of packages whose proof fails."""
    up = place.upstream()
    up.put(b"dists/s/Release", b"1")
    up.commit()
    failing = Proof(command="/bin/false")
    yield from run(place.downstream(up, proofs={"apt": failing}), "sync", codes=[58])


def watched(place: Site, _: Path) -> Iterator[Lines]:
    """An upstream that sends an event of a commit, and one that does not answer."""
    down = place.downstream(grown(place), url=["http://127.0.0.1:9", place.url])
    process = down.spawn("watch", "--json")
    output = read_until(process, '"ended"', '"told"')
    process.terminate()
    done = ended(process)
    yield parse(done._replace(out=output + done.out), [143])


def attested(place: Site, _: Path) -> Iterator[Lines]:
    """A tree with an attestation that is not sent."""
    yield from run(attesting(place, send=False).down, "sync")


SCENES = (life, undone, filtered, refusals, trouble, full, unproved, watched, attested)


def test_every_line_is_as_described_and_all_is_printed(place: Site, tmp_path: Path) -> None:
    """One test, since the scenes take long and are judged together."""
    events: Lines = []
    for scene in SCENES:
        (folder := tmp_path / scene.__name__).mkdir()
        events += chain.from_iterable(scene(place, folder))
    assert sorted({fault for event in events for fault in json_events.faults(PROGRAM, event)}) == []
    assert set(json_events.events(PROGRAM)) - {event["type"] for event in events} == set()
    printed = {name for event in events for name in json_events.occurring(event)}
    assert json_events.described(PROGRAM) - printed == set()
    for kind in ("operation", "file-arrived", "delayed", "change"):  # no byte of a path is lost
        selected = [event for event in events if event["type"] == kind]
        paths = {event.get(name) or "" for event in selected for name in PATHS}
        assert b"odd/\xff\n\\" in {path.encode("utf-8", "surrogateescape") for path in paths}


def test_every_command_takes_json() -> None:
    group = command_line(PROGRAM)
    assert isinstance(group, click.Group)
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        assert any("--json" in parameter.opts for parameter in command.params), name
