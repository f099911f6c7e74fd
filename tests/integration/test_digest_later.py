"""Digests that the upstream adds later: a downstream takes them in and leaves its tree alone."""

import json
import os
import re
import signal
import subprocess
import time
from typing import Any

import httpx

from tests.support import json_events
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    SERVER,
    Downstream,
    Ended,
    Site,
    Upstream,
    ended,
)

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


def digested(up: Upstream) -> dict[str, Any]:
    """The result of a run that has to go well."""
    done = digest(up)
    assert done.code == 0, done
    (found,) = map(json.loads, done.out.splitlines())
    assert [*json_events.faults("huai-server", found)] == []
    assert isinstance(found, dict)
    return found


def states(down: Downstream) -> dict[str, tuple[int, ...]]:
    """What a rewritten, replaced or touched file or directory would not keep."""
    found: dict[str, tuple[int, ...]] = {}
    for path in [down.dest, *down.dest.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return found


def shown(place: Site, up: Upstream) -> tuple[bool, float]:
    """Whether the page of a module tells of missing digests, and how many its metrics name."""
    page = httpx.get(f"{place.url}/modules/{up.name}", timeout=SECONDS).text
    metrics = httpx.get(f"{place.url}/metrics", timeout=SECONDS).text
    named = re.search(rf'huai_module_undigested_files{{module="{up.name}"}} (.*)', metrics)
    assert named
    return "files without a digest" in page, float(named[1])


def test_a_downstream_takes_in_digests_without_touching_its_tree(place: Site) -> None:
    up = place.upstream(digest="later")
    up.many(b"many", 140)
    up.put(b"deep/er/file", b"content")
    os.link(up.at(b"deep/er/file"), up.at(b"deep/link"))
    up.at(b"symlink").symlink_to("deep")
    down = place.synced_downstream(up)
    file = down.dest / "many/7"
    before = states(down)
    assert shown(place, up) == (True, 142.0)
    found = digested(up)
    assert shown(place, up) == (False, 0.0)
    assert (found["changed"], found["missing"], found["hashed_files"]) == (True, 0, 141)
    assert down.plan() == []
    result = down.synced()
    assert result["serial"] == found["serial"]
    assert result.get("summary", {}).get("fetches", 0) == result.get("received", 0) == 0
    assert states(down) == before
    assert down.verify("--content").code == 0
    status = file.stat()
    file.write_bytes(b"X" * status.st_size)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert down.verify("--content").code != 0


def test_a_killed_run_is_taken_up_where_it_was(place: Site) -> None:
    up = place.upstream(digest="later")
    up.put(b"larger", b"")
    os.truncate(up.at(b"larger"), 8 * LARGE)
    os.utime(up.at(b"larger"), (1_000, 1_000))
    up.put(b"small", b"s" * (LARGE // 16))
    up.commit()
    left = up.places.folder / "digests.left"
    # The rate lets the larger file, a batch by itself, take a minute.
    process = subprocess.Popen(command(up, "--rate", str(LARGE // 8)), env=ENVIRONMENT)
    try:
        deadline = time.monotonic() + SECONDS
        while not left.exists() or left.stat().st_size <= 16:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    found = digested(up)
    assert (found["changed"], found["missing"]) == (True, 0)
    assert (found["hashed_files"], found["hashed_bytes"]) == (1, 8 * LARGE)


def test_a_commit_is_not_kept_waiting(place: Site) -> None:
    up = place.upstream(digest="later")
    up.put(b"one", b"1" * 1000)
    up.put(b"old", b"")
    os.truncate(up.at(b"old"), LARGE + 1)
    os.utime(up.at(b"old"), (1_000, 1_000))
    up.commit()
    left = up.places.folder / "digests.left"
    process = subprocess.Popen(command(up, "--rate", "1"), env=ENVIRONMENT)
    try:
        while not left.exists():
            assert process.poll() is None
            time.sleep(0.01)
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
    up.put(b"large", b"")
    os.truncate(up.at(b"large"), LARGE)
    up.commit()
    # At this rate the file takes years.
    done = digest(up, "--rate", "1", "--time", "1s")
    assert done.code == 41
    (found,) = map(json.loads, done.out.splitlines())
    assert (found["changed"], found["missing"], found["hashed_files"]) == (False, 1, 0)
    assert [problem[0] for problem in found["problems"]] == ["large"]
    assert digested(up)["missing"] == 0


def test_bad_limits_are_refused(place: Site) -> None:
    up = place.upstream(digest="later")
    for arguments in (("--time", "soon"), ("--time", "-1h"), ("--rate", "0"), ("--rate", "fast")):
        assert digest(up, *arguments).code == 1
