"""Every line of `huai-server --json` is as docs/JSON.md says, and all it says is printed."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import click

from docs.man.pages import command_line, commands, top_context
from huai_schema.codec.applied import FILE_NAME, AppliedRecord
from huai_schema.codec.attestation import Attestation, SignedAttestation
from huai_server.mirrors.lag import LagHistory
from huai_server.mirrors.record import Holding, holding_path, write_holding
from huai_server.state.paths import mirrors_folder, module_places
from huai_server.store.repository import Repository
from tests.support import json_events
from tests.support.committing import NAME, SECONDS, run_server, server_command, server_environment
from tests.support.keys import key, write_key

Lines = list[dict[str, Any]]
PROGRAM = "huai-server"


def run(root: Path, *arguments: str, code: int = 0) -> Lines:
    done = run_server(root, *arguments, "--json")
    assert done.returncode == code, done
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def service(root: Path, *arguments: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Run a service; yield its events as they come."""
    process = subprocess.Popen(
        server_command(root, *arguments, "--json"),
        env=server_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield map(json.loads, process.stdout)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def watched(root: Path, tree: Path) -> Lines:
    """A watcher, until it has committed one change."""
    with service(root, "watch", NAME, "--delay", "0") as events:
        received: Lines = []
        for event in events:
            received.append(event)
            kinds = [received_event["type"] for received_event in received]
            if kinds.count("in_step") == 1 and kinds[-1] == "in_step":
                (tree / "changed").write_text("1")
            if kinds.count("in_step") > 1 and "behind" in kinds:
                return received
        raise AssertionError(received)


def scrubbed(root: Path, tree: Path) -> Iterator[Lines]:
    """A file is damaged, and deleted."""
    yield run(root, "scrub", NAME, "--full")
    status = (tree / "more").stat()
    (tree / "more").write_text("damaged")
    os.utime(tree / "more", ns=(status.st_atime_ns, status.st_mtime_ns))
    yield run(root, "scrub", NAME, "--full", code=59)
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'{text}digest = "later"\n')
    yield run(root, "status")
    (root / "server.toml").write_text(text)
    (tree / "more").unlink()
    yield run(root, "scrub", NAME)


def notified(root: Path) -> Lines:
    """A message that cannot be delivered, to recipients of all kinds."""
    file = root / "server.toml"
    text = file.read_text()
    notify = "mail = {to = 'a@x.example', port = 9}, web = {url = 'http://127.0.0.1:9'}"
    file.write_text(f"notify = {{{notify}, command = '/bin/false'}}\n{text}")
    lines = run(root, "notify", code=10)
    file.write_text(text)
    return lines


def probed(root: Path) -> Lines:
    """A mirror that attests the newest commit, and cannot be reached."""
    head = Repository(module_places(root, NAME).repository).head()
    assert head is not None
    urls, now = ("http://127.0.0.1:9/",), int(time.time())
    claim = Attestation(NAME, "", head.info.serial, head.commit, now, partial=False, urls=urls)
    text = claim.signed(key(1).sign)
    holding = Holding(SignedAttestation.decode(text), text, now, LagHistory(now))
    write_holding(holding_path(mirrors_folder(root), NAME, "one"), holding)
    with (root / "server.toml").open("a") as file:
        file.write(f'\n[allowed_downstreams.one]\nkey = "{key(1).public}"\n')
        file.write('hosts = ["127.0.0.1:9"]\n')
    return run(root, "probe", NAME)


def cosigned(root: Path, tree: Path) -> Iterator[Lines]:
    """A commit waits for the signature of a key that is elsewhere."""
    toml, second = root / "server.toml", write_key(root / "second", key(2))
    more = f'threshold = 2\npending = true\n[[signing.cosigners]]\nkey = "{second}'
    alone = toml.read_text()
    cosigned = f'{alone}{more}"\n'
    toml.write_text(cosigned)
    yield run(root, "key", "configure")
    toml.write_text(f'{alone}{more}.pub"\ncommand = ["/bin/false"]\n')
    (tree / "signed").write_text("elsewhere")
    yield run(root, "commit", NAME, code=57)
    yield run(root, "key", "pending", NAME, str(root / "request"))
    (operator := root / "operator").mkdir()
    (operator / "server.toml").write_text(f'[signing]\nkey = "{second}"\n')
    signature = str(root / "signature")
    yield run(operator, "key", "cosign", str(root / "request"), "--output", signature)
    yield run(root, "key", "attach", NAME, signature)
    toml.write_text(cosigned)


def relayed(root: Path, tree: Path, client: Path) -> Iterator[Lines]:
    """The commits of `root`, as if a client had applied the newest, at another server."""
    module = client / "modules" / NAME
    module.mkdir(parents=True)
    yield run(client / "server", "add", NAME, str(tree), "--relay", str(client))
    yield run(client / "server", "status")
    (module / "repository.git").symlink_to(module_places(root, NAME).repository)
    (commit,) = (event["commit"] for event in run(root, "status"))
    (module / FILE_NAME).write_bytes(AppliedRecord(commit, "").encode())
    yield run(client / "server", "relay", NAME)
    yield run(client / "server", "status")


def life(root: Path, tree: Path) -> Iterator[Lines]:
    """A module from its adding to its removal."""
    (tree / "file").write_text("content")
    yield run(root, "nonesuch", code=1)
    yield run(root, "commit", NAME, code=45)
    yield run(root, "add", NAME, str(tree))
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'[fallback]\nfolder = "{root}/attr"\n\n{text}')
    yield run(root, "status")
    yield run(root, "announce", NAME, "http://127.0.0.1:8730")
    yield run(root, "commit", NAME)
    yield run(root, "export", NAME, "--only", "fedora", "--to", str(tree))
    (www := root / "www").mkdir()
    yield run(root, "publish", NAME, "--to", str(www))
    yield run(root, "fallback", "build", NAME)
    (tree / "more").write_text("content")
    yield run(root, "commit", NAME)
    yield run(root, "commit", NAME)
    (tree / "later").write_text("later")
    yield run(root, "audit", NAME, code=47)
    yield run(root, "digest", NAME)
    yield from scrubbed(root, tree)
    (tree / "list").write_text(">f+++++++++ more\n")
    yield run(root, "commit", NAME, "--changes", str(tree / "list"))
    yield run(root, "status")
    yield run(root, "check", NAME)
    yield run(root, "maintain", NAME, "--dry-run")
    yield run(root, "maintain", NAME)
    yield from relayed(root, tree, root / "client")
    yield run(root, "key", "show", code=40)
    yield run(root, "key", "new", str(root / "key"))
    with (root / "server.toml").open("a") as file:
        file.write(f'\n[signing]\nkey = "{root / "key"}"\n')
    yield run(root, "key", "rotate", "--keep")
    keys = run(root, "key", "show")
    yield keys
    yield run(root, "key", "revoke", keys[1]["key"])
    yield run(root, "commit", NAME)
    yield from cosigned(root, tree)
    yield [*notified(root), *probed(root)]
    (token,) = run(root, "token", "new", NAME, "--expires", "1d")
    yield [token]
    yield run(root, "token", "list")
    yield run(root, "token", "revoke", token["id"])
    yield run(root, "fallback", "check", NAME)
    yield run(root, "fallback", "conf", "--no-test")
    with service(root, "serve", "--port", "0") as events:
        yield [next(events)]
    yield watched(root, tree)
    yield run(root, "fallback", "remove", NAME)
    yield run(root, "remove", NAME, "--purge")


def test_every_line_is_as_described_and_all_is_printed(tmp_path: Path) -> None:
    root, tree = tmp_path / "state", tmp_path / "tree"
    tree.mkdir(mode=0o700)  # one of the warnings
    events = [*chain.from_iterable(life(root, tree))]
    assert sorted({fault for event in events for fault in json_events.faults(PROGRAM, event)}) == []
    assert set(json_events.events(PROGRAM)) - {event["type"] for event in events} == set()
    printed = {name for event in events for name in json_events.occurring(event)}
    assert json_events.described(PROGRAM) - printed == set()


def test_every_command_takes_json() -> None:
    for name, context in commands(top_context(PROGRAM, command_line(PROGRAM))):
        if not isinstance(context.command, click.Group):
            assert any("--json" in each.opts for each in context.command.params), name
