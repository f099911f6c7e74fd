"""A commit that is killed while it updates the attr tree, with an rsync daemon of one's own.

A client that deletes must never lose a file that the mirror has, and is refused what is neither
the old listing nor the new one.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.fallback.redirect import preload_library
from tests.fault.sampling import some_of
from tests.support.attr_trees import Fallback
from tests.support.committing import NAME, SECONDS
from tests.support.redirecting import contents
from tests.support.rsyncd import rsync_daemon
from tests.support.system_calls import CHANGING, KILL, Call, at, never, supervise

REFUSED, VANISHED, PARTIAL = 5, 24, 23


@pytest.fixture
def module(short_path: Path) -> Fallback:
    """One whose attr tree has to follow: new, changed, moved, deleted, and another kind."""
    short_path.chmod(0o755)
    made = Fallback(short_path)
    for number in range(15):
        made.write(f"d{number % 3}/f{number}", f"content {number}")
    made.commit()
    made.ensure()
    made.write("d1/new", "new")
    made.write("d2/f5", "changed content")
    (made.tree / "d0/f0").unlink()
    (made.tree / "d0/f3").unlink()
    (made.tree / "d0/f3").mkdir()
    made.write("d0/f3/inside", "was a file")
    (made.tree / "d1").rename(made.tree / "renamed")
    made.commit()
    return made


def run(module: Fallback) -> str:
    try:
        return module.ensure().action
    except HuaiError as error:
        return error.message


@pytest.mark.timeout(300)
def test_a_client_that_deletes_loses_nothing(module: Fallback) -> None:
    folder, place = module.attr.folder.parent, module.attr.folder.parent.parent
    saved, before = place / "saved", place / "before"
    shutil.copytree(folder, saved, symlinks=True, copy_function=shutil.copy2)

    def reset() -> None:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder, symlinks=True, copy_function=shutil.copy2)

    real = contents(module.tree)
    steps = supervise(CHANGING, lambda: run(module), never).calls
    assert len(steps) > 20
    outcomes = set()
    with rsync_daemon({NAME: module.attr.served}, preload=preload_library()) as url:
        reset()
        copy(f"{url}/{NAME}/", before)
        for call in some_of(steps):
            reset()
            assert supervise(CHANGING, lambda: run(module), at(call.step, KILL)).killed, call
            client = place / "client"
            shutil.copytree(before, client, dirs_exist_ok=True)
            code = copy(f"{url}/{NAME}/", client)
            assert code in (0, REFUSED, VANISHED, PARTIAL), call
            outcomes.add(code)
            held = contents(client)
            for name in contents(before).keys() & real.keys():
                assert name in held, (call, code)
            if code == REFUSED:
                assert held == contents(before), call
            shutil.rmtree(client)
            assert_refused_if_cut(module, call, code)
            assert run(module) in ("built", "updated", "none"), call
            assert copy(f"{url}/{NAME}/", client) == 0, call
            assert contents(client) == real, call
            shutil.rmtree(client)
    assert REFUSED in outcomes
    assert 0 in outcomes


def assert_refused_if_cut(module: Fallback, call: Call, code: int) -> None:
    """A mark without a lock is what a daemon goes by."""
    if module.attr.updating.exists():
        assert code == REFUSED, call


def copy(url: str, place: Path) -> int:
    """What a mirror's plain client runs."""
    command = ["rsync", "-aH", "--delete", url, f"{place}/"]
    return subprocess.run(command, timeout=SECONDS, capture_output=True, check=False).returncode


def test_an_update_that_runs_is_served(module: Fallback) -> None:
    """The mark alone refuses nobody: whoever holds its lock is at work."""
    listed: list[int] = []

    def look(call: Call) -> None:
        if module.attr.updating.exists() and len(listed) < 5 and call.name == "rename":
            listed.append(copy(url, module.tree.with_name("client")))

    with rsync_daemon({NAME: module.attr.served}, preload=preload_library()) as base:
        url = f"{base}/{NAME}/"
        outcome = supervise(CHANGING, lambda: run(module), look)
        assert outcome.result == "updated"
        assert listed
        assert set(listed) <= {0, VANISHED, PARTIAL}
        assert copy(url, module.tree.with_name("client")) == 0
    assert contents(module.tree.with_name("client")) == contents(module.tree)
