"""An export that is killed before any of its system calls, or refused one, harms nothing."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from tests.fault.sampling import LONG, some_of
from tests.support.exporting import Exporter
from tests.support.mirror_files import tree_state
from tests.support.system_calls import CHANGING, KILL, Call, at, never, supervise


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    exporter = Exporter(short_path)
    for number in range(300):
        exporter.upstream.write(f"d{number % 3}/f{number}", "x" * number)
    exporter.upstream.commit()
    return exporter


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(exporter: Exporter, to: Path | None = None) -> str:
    try:
        return str(exporter.export(to or exporter.out).changed)
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"


def fill(place: Path) -> None:
    """Take all that is left of a disk."""
    free = os.statvfs(place.parent)
    with place.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_bsize)


@pytest.mark.timeout(LONG)
@pytest.mark.slow
def test_a_kill_before_every_system_call(exporter: Exporter) -> None:
    """Each file is the old or the new one, and the next run leaves nothing but the new ones."""
    exporter.outside()
    old = contents(exporter.out)
    saved = exporter.out.with_name("saved")
    shutil.copytree(exporter.out, saved)
    exporter.upstream.write("d0/new")
    exporter.upstream.commit()
    outcome = supervise(CHANGING, lambda: run(exporter), never)
    assert outcome.result == "True"
    new = contents(exporter.out)
    assert {name for name in new if new[name] != old[name]} >= {"ls-lR.gz", "fullfilelist"}
    amid = 0
    for call in some_of(outcome.calls):
        shutil.rmtree(exporter.out)
        shutil.copytree(saved, exporter.out)
        assert supervise(CHANGING, lambda: run(exporter), at(call.step, KILL)).killed, call
        found = contents(exporter.out)
        named = {name: text for name, text in found.items() if ".~tmp~" not in name}
        assert named.keys() == old.keys(), call
        assert all(text in (old[name], new[name]) for name, text in named.items()), call
        amid += named not in (old, new)
        run(exporter)
        assert contents(exporter.out) == new, call
        assert not list(exporter.out.rglob(".~tmp~")), call
    assert amid > 5


def test_a_commit_leaves_out_what_a_killed_export_left(exporter: Exporter) -> None:
    tree = exporter.upstream.tree

    def renaming(call: Call) -> int | None:
        return KILL if call.name == "rename" else None

    assert supervise(CHANGING, lambda: run(exporter, tree), renaming).killed
    (left,) = (path for folder in tree.rglob(".~tmp~") for path in folder.iterdir())
    exporter.upstream.commit()
    assert not any("tmp" in path for path in exporter.upstream.paths())
    run(exporter, tree)
    assert not left.parent.exists()


def test_on_a_full_disk_the_old_files_stay(exporter: Exporter, disk: Path) -> None:
    exporter.export(disk)
    before = tree_state(disk)
    old = contents(disk)
    for number in range(40):
        exporter.upstream.write(f"more/{number:03}-{'x' * 200}")
    exporter.upstream.commit()
    ballast = disk / "ballast"
    fill(ballast)
    said = run(exporter, disk)
    assert said.startswith("11 ")
    assert "No space left on device" in said
    assert str(disk) in said
    found = contents(disk)
    del found["ballast"]
    assert found == old
    ballast.unlink()
    assert tree_state(disk).keys() == before.keys()
    assert run(exporter, disk) == "True"
    assert b"more/039" in contents(disk)["fullfilelist"]


@pytest.mark.timeout(LONG)
@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_every_system_call_may_fail(exporter: Exporter, number: int) -> None:
    """A clear error, or no difference; each file is the old or the new one."""
    outcome = supervise(CHANGING, lambda: run(exporter), never)
    new = contents(exporter.out)
    failed = 0
    for call in some_of(outcome.calls, number):
        shutil.rmtree(exporter.out)
        exporter.out.mkdir()
        said = supervise(CHANGING, lambda: run(exporter), at(call.step, number)).result
        assert isinstance(said, str)
        assert said.partition(" ")[0] in ("True", "11", "52"), (call, said)
        failed += said != "True"
        named = {name: text for name, text in contents(exporter.out).items() if "~" not in name}
        assert named.items() <= new.items(), call
        run(exporter)
        assert contents(exporter.out) == new, call
    assert failed > 5
