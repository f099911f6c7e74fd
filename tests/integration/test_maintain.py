"""`huai-server maintain` while clients fetch, and as a command."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from huai_program.locking import locked
from huai_server.config.retention import FOREVER
from huai_server.http.git.upload_pack import Call, Git
from huai_server.store.maintain import maintain
from huai_server.store.replaced import KEPT
from tests.support.background import background
from tests.support.committing import NAME, Upstream, fsck, git, run_server
from tests.support.pktline import FLUSH_PACKET, packet, split
from tests.support.serving import Serving, serving

COMMITS = 8
FILES = 8_000
CHANGES = 80
NOW = 1_900_000_000
PIPE = 256 << 10
"""More than lies between two programs."""


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """Commits of many long names, which take some megabytes."""
    upstream = Upstream(tmp_path)
    upstream.configure(digest="off")
    folder = upstream.tree / "d"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{hash_of(number)}-{hash_of(number + FILES)}").touch()
    upstream.commit()
    for number in range(COMMITS):
        for place in sorted(folder.iterdir())[number :: FILES // CHANGES]:
            os.utime(place, (1_600_000_000, 1_600_000_000 + number))
        upstream.commit()
    return upstream


def hash_of(number: int) -> str:
    """Something that no compression shortens much."""
    return blake2b(b"%d" % number, digest_size=30).hexdigest()


def maintain_twice(upstream: Upstream) -> None:
    """Maintain twice, so that what was replaced is gone from the disk as well."""
    assert maintain(upstream.places, lambda: FOREVER, now=NOW).plan.merged == COMMITS + 2
    assert maintain(upstream.places, lambda: FOREVER, now=NOW + KEPT).after.replaced.files == 0


def test_a_slow_fetch_outlives_it(upstream: Upstream, tmp_path: Path) -> None:
    """Git has begun to send when all packs that it reads from go."""
    repository, head = upstream.places.repository, upstream.head.commit
    wants = packet(f"want {head} side-band-64k ofs-delta\n".encode())
    program, call = Git(60), Call(repository, 0, advert=False)
    process = subprocess.Popen(
        program.command(call),
        env=program.environment(call),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    with process, process.stdin, process.stdout:
        process.stdin.write(wants + FLUSH_PACKET + packet(b"done\n"))
        process.stdin.close()
        begun = process.stdout.read(10_000)
        maintain_twice(upstream)
        answer = begun + process.stdout.read()
    assert process.returncode == 0
    assert len(answer) > PIPE, "it had been sent before"
    pack = b"".join(band[1:] for band in split(answer) if band[:1] == b"\1")
    copy = tmp_path / "copy.git"
    git(tmp_path, "init", "--quiet", "--bare", str(copy))
    git(copy, "index-pack", "--stdin", "--strict", stdin=pack)
    git(copy, "update-ref", "refs/heads/main", head)
    fsck(copy)


@pytest.fixture
def server(upstream: Upstream) -> Iterator[Serving]:
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    with serving(upstream.root) as started:
        yield started


@pytest.mark.slow
def test_clones_while_it_runs_again_and_again(
    upstream: Upstream, server: Serving, tmp_path: Path
) -> None:
    """By git, from a server that has opened what goes, while commits are made as well."""

    def keep_order(stop: threading.Event) -> None:
        number = 0
        while not stop.is_set():
            maintain(upstream.places, lambda: FOREVER, now=NOW + number * KEPT, wait=60)
            number += 1
            upstream.write(f"more{number}")
            upstream.commit(wait=60)

    with background(keep_order):
        for number in range(6):
            copy = tmp_path / f"copy{number}"
            server.clone(copy)
            fsck(copy)
    upstream.prove_sound()


def test_the_command(small: Upstream) -> None:
    root = small.root
    for number in range(3):
        small.write(f"file{number}")
        small.commit()
    dry_run = run_server(root, "maintain", NAME, "--dry-run")
    assert dry_run.returncode == 0
    assert "m: 5 packs would become one; 4 packs of " in dry_run.stdout
    done = run_server(root, "maintain", "--all")
    assert "m: 5 packs became one; 1 pack of " in done.stdout
    assert " that go soon" in done.stdout
    assert run_server(root, "maintain", NAME, "--quiet").stdout == ""
    event = json.loads(run_server(root, "maintain", NAME, "--json").stdout)
    assert (event["merged_packs"], event["loose_objects"]) == (0, 0)
    assert event["after"] == event["before"]
    small.prove_sound()


def test_it_fails_during_a_commit_and_by_wrong_arguments(small: Upstream, tmp_path: Path) -> None:
    with locked(small.places.lock):
        assert run_server(small.root, "maintain", NAME).returncode == 43
    for arguments in ((), ("nosuch",), (NAME, "--wait", "-1"), (NAME, "--all")):
        assert run_server(small.root, "maintain", *arguments).returncode in (1, 45), arguments
    run_server(tmp_path / "root", "add", "empty", str(small.tree))
    done = run_server(tmp_path / "root", "maintain", "empty")
    assert (done.returncode, done.stdout) == (0, "empty: no commit yet\n")


@pytest.fixture
def small(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.write("file")
    upstream.commit()
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    return upstream
