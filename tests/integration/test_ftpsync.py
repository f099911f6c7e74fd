"""Debian's real ftpsync, with the lines of docs/HOOKS.md, and what tunasync reads of a run."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from huai_client.state.paths import module_places
from huai_client.state.state import load as load_state
from huai_schema.codec.announcement import FILE_NAME
from tests.integration.test_hook import HOOK, Upstream
from tests.integration.test_huai_rsync_discovery import Newcomer
from tests.support.rsync_calls import picture
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import ENVIRONMENT, Downstream, Pair, Site

TOP = Path(__file__).parents[2]
FTPSYNC = TOP / "build" / "ftpsync" / "usr" / "bin" / "ftpsync"
MODULE = "debian"


def documented_lines() -> str:
    """The lines of ftpsync.conf that the page names, with this checkout's hook."""
    section = (TOP / "docs" / "HOOKS.md").read_text().partition("\n## ftpsync\n")[2]
    lines = section.split("```")[1].strip()
    return lines.replace("/usr/share/huai-server/hooks/post-sync", str(HOOK))


def documented_program(installed: Path) -> str:
    """The line for a downstream, with the program that is installed here."""
    rows = (TOP / "docs" / "HUAI-RSYNC.md").read_text().splitlines()
    row = next(row for row in rows if row.startswith("| ftpsync |"))
    return row.split("`")[3].replace("/opt/huai/bin/huai-rsync", str(installed))


def run_ftpsync(
    home: Path, to: Path, source: str, lines: str, environment: Mapping[str, str]
) -> str:
    """Update the tree; returns the log."""
    folder = home / ".config" / "ftpsync"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ftpsync.conf").write_text(
        f'RSYNC_SOURCE="{source}"\nTO="{to}"\n'
        f'MIRRORNAME=mirror.example\nTRACEHOST=mirror.example\nMAILTO=""\n{lines}\n'
    )
    done = subprocess.run(
        [FTPSYNC, "sync:all"],
        env={**environment, "HOME": str(home), "LOGNAME": "mirror"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    logs = (home / ".local" / "log" / "ftpsync").glob("*ftpsync*.log*")
    text = "".join(each.read_text() for each in logs)
    assert done.returncode == 0, done.stdout + done.stderr + text
    return text


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.server("add", MODULE, str(upstream.tree))
    return upstream


def test_an_update_is_committed_and_keeps_the_announcement(
    upstream: Upstream, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "dists").mkdir(parents=True)
    (source / FILE_NAME).write_text("the announcement of the source")
    upstream.server("announce", MODULE, "https://mirror.example")
    announcement = (upstream.tree / FILE_NAME).read_bytes()
    home, lines = tmp_path / "home", documented_lines()
    with rsync_daemon({MODULE: source}) as url:
        for serial in (1, 2):
            (source / "dists" / "Release").write_text("1" * serial)
            url_of_module = f"{url}/{MODULE}"
            log = run_ftpsync(home, upstream.tree, url_of_module, lines, upstream.environment)
            assert "Back from hook 4, got returncode 0" in log
            assert json.loads(upstream.server("status", "--json", MODULE))["serial"] == serial
            assert (upstream.tree / FILE_NAME).read_bytes() == announcement
    assert not (upstream.tree / "file").exists()
    assert os.listdir(upstream.tree / "dists") == ["Release"]


def test_a_downstream_syncs_with_its_two_stages(place: Site, tmp_path: Path) -> None:
    newcomer = Newcomer(place, tmp_path)
    up, home = newcomer.up, tmp_path / "home"
    line = documented_program(newcomer.program)
    root = {"HUAI_CLIENT_ROOT": str(newcomer.root)}
    for number in range(3):
        up.put(b"pool/new %d" % number, b"content")
        up.put(b"dists/Release", b"%d" % number)
        if number:
            up.at(b"pool/new %d" % (number - 1)).unlink()
        commit = up.commit().head.commit
        run_ftpsync(home, newcomer.dest, newcomer.source, line, {**ENVIRONMENT, **root})
        # ftpsync itself writes traces, and the time of the folder that held its lock.
        own = re.compile(r"project($|/)|\.$")
        copy, original = (
            {path: item for path, item in picture(tree).items() if not own.match(path)}
            for tree in (newcomer.dest, up.tree)
        )
        assert copy == original
        state = load_state(module_places(newcomer.root, up.name).state)
        # Huai did the last call: one that is left to the real rsync is recorded as an attempt.
        assert (state.applied, state.attempted) == (commit, ())
    assert newcomer.modules() == [up.name]


# tunasync, internal/util.go: the last match in the log of the job counts.
RSYNC_PROVIDER = re.compile(r"(?m)^Total file size: ([0-9\.]+[KMGTP]?) bytes")
COMMAND_PROVIDER = re.compile(r"Total size is ([0-9\.]+[KMGTP]?)")
SIZE = 123_457


@pytest.fixture
def pair(place: Site) -> Pair:
    up = place.upstream()
    up.put(b"large", b"x" * (SIZE - 7))
    up.put(b"small", b"content")
    up.commit()
    return up, place.downstream(up)


def sizes(down: Downstream) -> list[str | None]:
    """Return the size that each pattern of tunasync finds in both streams, read as one log."""
    ended = down.sync()
    matches_of = [
        pattern.findall(ended.out + ended.err) for pattern in (RSYNC_PROVIDER, COMMAND_PROVIDER)
    ]
    return [matches[-1] if matches else None for matches in matches_of]


def test_the_size_is_told_whatever_there_was_to_do(pair: Pair) -> None:
    up, down = pair
    assert sizes(down) == [str(SIZE)] * 2
    assert sizes(down) == [str(SIZE)] * 2  # nothing new
    up.put(b"more", b"1234")
    up.commit()
    assert sizes(down) == [str(SIZE + 4)] * 2
    up.at(b"large").unlink()
    up.commit()
    assert sizes(down) == ["11"] * 2


def test_no_size_is_told_after_a_failure(pair: Pair) -> None:
    up, down = pair
    up.at(b"large").unlink()  # committed, and gone when the content is fetched
    assert sizes(down) == [None, None]


def test_the_module_can_be_called_as_tunasync_calls_it(pair: Pair) -> None:
    up, down = pair
    variables = {"TUNASYNC_MIRROR_NAME": up.name, "HUAI_CLIENT_ROOT": str(down.root)}
    ended = down.process("sync", up.name, environment=variables)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[-2:] == [f"Total file size: {SIZE} bytes", f"Total size is {SIZE}"]
