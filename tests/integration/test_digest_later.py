"""Digests that the upstream adds later: a downstream takes them and leaves its tree alone."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.support import json_events
from tests.support.processes import until
from tests.support.upstream import ENVIRONMENT, SECONDS, SERVER, Ended, Site, Upstream, ended
from tests.support.verifying import spoil

LARGE = 64 << 20


def command(up: Upstream, *arguments: str) -> list[str]:
    return [*SERVER, "--root", str(up.root), "digest", up.name, *arguments]


def digest(up: Upstream, *arguments: str) -> Ended:
    process = subprocess.Popen(
        command(up, "--json", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    return ended(process)


def add_digests(up: Upstream) -> dict[str, Any]:
    """Return the result of a run that has to succeed."""
    done = digest(up)
    assert done.code == 0, done
    (event,) = map(json.loads, done.out.splitlines())
    assert [*json_events.faults("huai-server", event)] == []
    assert isinstance(event, dict)
    return event


def read_states(tree: Path) -> dict[str, tuple[int, ...]]:
    """Return what a rewritten, replaced or touched file or directory would not keep."""
    statuses = {str(path): path.lstat() for path in [tree, *tree.rglob("*")]}
    return {
        path: (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        for path, status in statuses.items()
    }


def count_undigested(place: Site, up: Upstream) -> float:
    """Return the number of the metrics; the page has a note if it is not 0."""
    page = httpx.get(f"{place.url}/modules/{up.name}", timeout=SECONDS).text
    metrics = httpx.get(f"{place.url}/metrics", timeout=SECONDS).text
    line = re.search(rf'huai_module_undigested_files{{module="{up.name}"}} (.*)', metrics)
    assert line
    assert ("files without a digest" in page) == (float(line[1]) > 0)
    return float(line[1])


def put_sparse(up: Upstream, path: bytes, size: int) -> None:
    os.truncate(up.put(path), size)
    os.utime(up.at(path), (1_000, 1_000))


def test_a_downstream_takes_digests_without_touching_its_tree(place: Site) -> None:
    up = place.upstream(digest="later")
    up.many(b"many", 140)
    up.put(b"deep/er/file", b"content")
    os.link(up.at(b"deep/er/file"), up.at(b"deep/link"))
    up.at(b"symlink").symlink_to("deep")
    down = place.synced_downstream(up)
    before = read_states(down.dest)
    assert count_undigested(place, up) == 142
    event = add_digests(up)
    assert count_undigested(place, up) == 0
    assert (event["changed"], event["missing"], event["hashed_files"]) == (True, 0, 141)
    assert down.plan() == []
    result = down.synced()
    assert result["serial"] == event["serial"]
    assert result.get("summary", {}).get("fetches", 0) == result.get("received", 0) == 0
    assert read_states(down.dest) == before
    assert down.verify("--content").code == 0
    spoil(down, "many/7")
    assert down.verify("--content").code != 0


def test_a_commit_is_not_kept_waiting(place: Site) -> None:
    up = place.upstream(digest="later")
    up.put(b"one", b"1" * 1000)
    put_sparse(up, b"old", LARGE + 1)
    up.commit()
    process = subprocess.Popen(command(up, "--rate", "1"), env=ENVIRONMENT)
    try:
        until((up.places.folder / "digests.left").exists)
        up.put(b"two", b"2")
        done = subprocess.run(
            [*SERVER, "--root", str(up.root), "commit", up.name, "--wait", str(SECONDS)],
            env=ENVIRONMENT,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_time_ends_the_reading_of_a_file(place: Site) -> None:
    up = place.upstream(digest="later")
    put_sparse(up, b"large", LARGE)
    up.commit()
    for arguments in (("--time", "soon"), ("--time", "-1h"), ("--rate", "0"), ("--rate", "fast")):
        assert digest(up, *arguments).code == 1
    # At this rate the file takes years.
    done = digest(up, "--rate", "1", "--time", "1s")
    assert done.code == 41
    (event,) = map(json.loads, done.out.splitlines())
    assert (event["changed"], event["missing"], event["hashed_files"]) == (False, 1, 0)
    assert [problem[0] for problem in event["problems"]] == ["large"]
    assert add_digests(up)["missing"] == 0
