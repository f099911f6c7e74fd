"""A commit that is older than max_age allows: said by sync and status, and an exit code."""

import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from huai_client.state import state as states
from tests.support.rewriting import Rewriting
from tests.support.upstream import ENVIRONMENT, SECONDS, Downstream, Pair, Site


@pytest.fixture(name="pair")
def upstream_and_downstream(place: Site) -> Pair:
    up = place.upstream()
    up.put(b"file", b"1")
    up.commit()
    down = place.downstream(up, max_age="1h")
    return up, down


def age(down: Downstream, seconds: int) -> None:
    """Let the recorded commit be that much older: as time does it."""
    text = down.state_file.read_text(encoding="ascii")
    committed = down.state.committed
    down.state_file.write_text(text.replace(str(committed), str(committed - seconds)), "ascii")


def test_a_commit_is_stale_until_there_is_a_newer_one(place: Site, pair: Pair) -> None:
    up, down = pair
    assert down.run("status").code == 0  # never synced: nothing is known
    before = int(time.time()) - 60
    result = down.synced()
    assert before < result["committed"] <= time.time()
    assert down.state.committed == result["committed"]
    assert (result["stale"], down.synced()["stale"]) == (False, False)
    assert down.sync().err.count("max_age") == 0
    ended = down.run("status", "--json")
    assert (ended.code, ended.events("module")[0]["stale"]) == (0, False)
    age(down, 7300)
    assert down.synced()["stale"] is True
    ended = down.sync("-q")
    assert ended.code == 0
    assert f"{down.name}: the newest commit of the upstream is 2 hours 1 minute old" in ended.err
    assert down.run("status", "--json").events("module")[0]["stale"] is True
    ended = down.run("status")
    assert ended.code == 54
    assert 'more than max_age = "1h" allows' in ended.out
    for max_age in ("3d", "0", "1h"):
        down.configure(max_age=max_age)
        assert down.run("status").code == (54 if max_age == "1h" else 0)
    assert place.downstream(up).run("status").code == 0
    up.put(b"new", b"1")
    up.commit()
    assert down.synced()["stale"] is False
    assert down.run("status").code == 0


def test_a_sync_that_brings_an_old_commit_says_so(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"file", b"1")
    up.commit()
    copy = tmp_path / "copy.git"
    git("clone", "--bare", "--quiet", str(up.places.repository), str(copy))
    # The same tree and message, committed long ago.
    commit = git("-C", str(copy), "commit-tree", "main^{tree}", "-F", str(message(copy, tmp_path)))
    git("-C", str(copy), "update-ref", "refs/heads/main", commit.strip())
    down = place.downstream(up, max_age="2d", url=str(copy), content_urls=(f"{up.tree}/",))
    ended = down.sync("--json")
    assert ended.code == 0, ended
    assert ended.events("sync")[0]["stale"] is True
    assert "max_age" in ended.err
    assert down.state.committed == 1_600_000_000
    assert down.run("status").code == 54


def test_a_commit_dated_ahead_does_not_stay_young(pair: Pair) -> None:
    up, down = pair
    git = Rewriting(up.places.repository)
    ahead = int(time.time()) + 3 * 365 * 86400
    git.commit(git.resolve("main^{tree}"), git.message, when=ahead)
    ended = down.sync("--json")
    assert (ended.code, ended.events("sync")[0]["stale"]) == (0, False)
    assert "ahead of this machine's clock" in ended.err
    assert down.run("status").code == 0
    state = down.state
    states.save(down.state_file, replace(state, seen=state.seen - 7300))
    assert "at least 2 hours 1 minute old" in down.sync().err
    ended = down.run("status")
    assert ended.code == 54
    assert "ahead of this machine's clock" in ended.out
    # Compared again, it is as old as before.
    assert down.sync("--adopt", "--json").events("sync")[0]["stale"] is True
    assert down.run("status").code == 54


def message(repository: Path, folder: Path) -> Path:
    path = folder / "message"
    path.write_text(git("-C", str(repository), "log", "-1", "--format=%B", "main").strip() + "\n")
    return path


def git(*arguments: str) -> str:
    moment = "1600000000 +0000"
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "t"), ("EMAIL", "t@t"), ("DATE", moment))
    }
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **identity},
        timeout=SECONDS,
        check=True,
    )
    return done.stdout
