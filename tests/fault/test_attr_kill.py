"""A build or an update of an attr tree that is killed anywhere is healed by the next run."""

import shutil
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from tests.fault.sampling import LONG, some_of
from tests.support.attr_trees import Fallback, seen
from tests.support.system_calls import CHANGING, KILL, at, never, supervise


def run(module: Fallback) -> str:
    try:
        return module.ensure().action
    except HuaiError as error:
        return error.message


@pytest.fixture(params=["build", "update"])
def module(request: pytest.FixtureRequest, short_path: Path) -> Fallback:
    made = Fallback(short_path)
    for number in range(12):
        made.write(f"d{number % 3}/f{number}", "x" * number)
    made.commit()
    if request.param == "update":
        made.ensure()
        made.write("d1/new", "new")
        made.write("d1/f1", "changed content")
        (made.tree / "d1/to").symlink_to("f1")
        (made.tree / "d1/linked").hardlink_to(made.tree / "d1/f4")
        (made.tree / "d2/f2").unlink()
        (made.tree / "d0/f0").unlink()
        (made.tree / "d0/f0").mkdir()
        made.commit()
    return made


@pytest.mark.timeout(LONG)
def test_a_kill_before_every_system_call(module: Fallback) -> None:
    folder = module.attr.folder.parent
    saved = folder.with_name("saved")
    if folder.exists():
        shutil.copytree(folder, saved, symlinks=True, copy_function=_copy)
    before = seen(module.attr.tree) if saved.exists() else {}
    after = seen(module.tree)

    def reset() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if saved.exists():
            shutil.copytree(saved, folder, symlinks=True, copy_function=_copy)

    steps = supervise(CHANGING, lambda: run(module), never).calls
    assert len(steps) > 15
    for call in some_of(steps):
        reset()
        outcome = supervise(CHANGING, lambda: run(module), at(call.step, KILL))
        assert outcome.killed, call
        if module.attr.tree.exists():
            for path, listed in seen(module.attr.tree).items():
                # Directories have the time of the change until they are given theirs.
                is_folder = listed[1] is None
                assert is_folder or listed in (before.get(path), after.get(path)), (call, path)
        assert run(module) in ("built", "updated", "none"), call
        module.assert_equal(call)


def _copy(source: str, target: str) -> str:
    return str(shutil.copy2(source, target, follow_symlinks=False))
