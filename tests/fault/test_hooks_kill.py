"""A sync that is killed anywhere: each change gets to `on_change`, by the next run if need be."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from huai_client.hook_table import Hooks
from tests.fault.cut_sync import cut, cut_at
from tests.fault.sampling import CUTS, LONG
from tests.fault.story import Story
from tests.support.upstream import Downstream

COLLECT = """#!/bin/sh -e
cat "$HUAI_WRITTEN_LIST" "$HUAI_DELETED_LIST" "$HUAI_ATTRIBUTES_LIST" >>"$1"
"""


def looks(top: Path) -> dict[bytes, tuple[object, ...]]:
    """What stands at each path: what a hook would have to be told of if it changed."""
    found: dict[bytes, tuple[object, ...]] = {}
    for folder, names, files in os.walk(os.fsencode(top)):
        for name in (*names, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = b""
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                content = Path(os.fsdecode(path)).read_bytes()
            relative = os.path.relpath(path, os.fsencode(top))
            found[relative] = (status.st_mode, status.st_mtime_ns, content)
    return {path: look for path, look in found.items() if not path.startswith(b".~tmp~")}


def is_told(path: bytes, told: set[bytes]) -> bool:
    parts = path.split(b"/")
    above = {b"/".join(parts[:number]) + b"/" for number in range(1, len(parts) + 1)}
    return path in told or bool(above & told)


def hooked(down: Downstream, folder: Path) -> Path:
    """Collect what `on_change` is told, in the file that is returned."""
    program, told = folder / "collect", folder / "told"
    program.write_text(COLLECT)
    program.chmod(0o755)
    down.configure(hooks=Hooks(on_change=(str(program), str(told))))
    return told


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_each_change_is_told_though_the_run_was_killed(story: Story, tmp_path: Path) -> None:
    up = story.publish("b")
    whole = story.downstream(tmp_path / "whole", up)
    hooked(whole, tmp_path)
    total = cut(whole, 0).passed
    for point in range(3, total + 1, max(1, total // CUTS)):
        folder = tmp_path / str(point)
        down = story.downstream(folder, up)
        told = hooked(down, folder)
        before = looks(down.dest)
        cut_at(down, point, total)
        assert not told.exists()
        assert down.process("sync", down.name).code == 0
        after = looks(down.dest)
        paths = {*told.read_bytes().split(b"\0")} if told.exists() else set()
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        assert changed
        assert [path for path in sorted(changed) if not is_told(path, paths)] == []
        shutil.rmtree(folder)


def test_a_kill_in_the_hook_itself(story: Story, tmp_path: Path) -> None:
    down = story.downstream(tmp_path / "place", story.publish("b"))
    told = hooked(down, tmp_path)
    killer = tmp_path / "killer"
    killer.write_text("#!/bin/sh\nkill -9 $PPID\n")
    killer.chmod(0o755)
    collecting = tmp_path / "collect"
    down.configure(hooks=Hooks(on_change=str(killer), after=str(killer)))
    assert down.process("sync", down.name).code == -signal.SIGKILL
    down.configure(hooks=Hooks(on_change=(str(collecting), str(told))))
    done = down.process("sync", down.name)
    assert done.code == 0
    assert "nothing new" in done.err
    assert {b"only-in-b", b"stays/1"} <= {*told.read_bytes().split(b"\0")}
    told.unlink()
    assert down.process("sync", down.name).code == 0
    assert not told.exists()
