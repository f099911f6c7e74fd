"""An attr tree changed by another program: detected, not served any more, and rebuilt."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.config.load import load
from huai_server.fallback.attr.foreign_changes import ForeignChanges, coarse_now
from huai_server.fallback.attr.generations import is_sealed
from huai_server.fallback.trees import Trees
from huai_server.state.paths import FallbackPlaces
from tests.support.attr_trees import Fallback
from tests.support.committing import NAME, SECONDS, run_server
from tests.support.fallback_service import configure, service, upstream
from tests.support.processes import until


@pytest.fixture
def module(short_path: Path) -> Fallback:
    """Files at several depths, in folders with and without folders."""
    module = Fallback(short_path)
    for number in range(60):
        module.write(f"d{number % 3}/deep/e{number % 5}/f{number}", "x" * number)
    module.commit()
    module.ensure()
    later()
    return module


def later() -> None:
    """Let the clock that file systems take times from come to what the last change ended at."""
    now = time.clock_gettime_ns(time.CLOCK_REALTIME)
    until(lambda: coarse_now() > now)


def damage(module: Fallback) -> Path | None:
    """Return the damage that one pass finds."""
    one_pass = ForeignChanges(module.attr)
    assert one_pass.run()
    return one_pass.damage


def _delete(top: Path) -> Path:
    (top / "d1/deep/e1/f1").unlink()
    return top / "d1/deep/e1"


def _delete_with_the_times_put_back(top: Path) -> Path:
    folder = top / "d1/deep/e1"
    times = folder.stat()
    (folder / "f1").unlink()
    os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))
    return folder


def _empty(top: Path) -> Path:
    for path in (top / "d2/deep/e3").iterdir():
        path.unlink()
    return top / "d2/deep/e3"


def _delete_a_folder(top: Path) -> Path:
    shutil.rmtree(top / "d0/deep/e0")
    return top / "d0/deep"


def _add(top: Path) -> Path:
    (top / "d0/deep/stranger").touch()
    return top / "d0/deep"


def _rename(top: Path) -> Path:
    (top / "d0/deep/e0/f0").rename(top / "d0/deep/e0/other")
    return top / "d0/deep/e0"


def _shut(top: Path) -> Path:
    (top / "d1/deep/e4").chmod(0)
    return top / "d1/deep/e4"


CHANGES = (
    *(_delete, _delete_with_the_times_put_back, _empty),
    *(_delete_a_folder, _add, _rename, _shut),
)


def test_a_build_sees_what_somebody_changed(module: Fallback, subtests: pytest.Subtests) -> None:
    for change in CHANGES:
        with subtests.test(change.__name__):
            assert damage(module) is None
            generation = module.attr.tree.resolve()
            place = change(module.attr.tree).resolve()
            assert place.is_relative_to(generation)
            assert damage(module) == place
            assert module.ensure(look=True).action == "built"
            module.assert_equal()
            later()


def test_an_update_is_no_damage_and_hides_none(module: Fallback) -> None:
    for number in range(3):
        module.write(f"d{number}/deep/e{number}/new")
        (module.tree / f"d{number}/deep/e{number}/f{number}").unlink()
        (module.tree / f"d{number}").rename(module.tree / f"moved{number}")
        module.commit()
        assert module.ensure().action == "updated"
        assert damage(module) is None
    later()
    _delete_a_folder_of(module.attr.tree / "moved1")
    module.write("more")
    module.commit()
    assert module.ensure().action == "updated"
    assert damage(module) is not None
    assert module.ensure(look=True).action == "built"
    module.assert_equal()


def _delete_a_folder_of(folder: Path) -> None:
    shutil.rmtree(folder / "deep/e1")


def test_many_updates_look_by_themselves(module: Fallback) -> None:
    _delete(module.attr.tree)
    actions = []
    for number in range(40):
        module.write("d2/counter", "x" * number)
        module.commit()
        actions.append(module.ensure().action)
    assert "built" in actions
    module.assert_equal()
    assert damage(module) is None


def test_a_pass_in_small_pieces_ends(module: Fallback) -> None:
    one_pass = ForeignChanges(module.attr)
    for number in range(200):
        (module.attr.tree / f"extra{number}").mkdir()
    os.utime(module.attr.tree, ns=(0, module.tree.stat().st_mtime_ns))
    pieces = 0
    while not one_pass.run(time.monotonic() - 1):
        pieces += 1
    assert one_pass.damage is not None
    assert pieces < 1000


@pytest.fixture
def root(short_path: Path) -> Path:
    root = upstream(short_path, {"file": b"content"})
    (short_path / "tree/a/b1").mkdir(parents=True)
    for number in range(10):
        (short_path / f"tree/a/b1/f{number}").write_text("x")
    assert run_server(root, "commit", NAME).returncode == 0
    return root


def test_the_command_sees_it(root: Path) -> None:
    assert run_server(root, "fallback", "build", NAME).returncode == 0
    assert "is current" in run_server(root, "fallback", "build", NAME).stdout
    shutil.rmtree(root.parent / "fallback" / NAME / "tree/a/b1")
    assert "attr tree built" in run_server(root, "fallback", "build", NAME).stdout
    assert run_server(root, "fallback", "check", NAME).returncode == 0


def test_a_service_stops_serving_it_and_builds_anew(root: Path) -> None:
    # No proof by the hour has a part in this.
    configure(root, root.parent / "tree", check_interval=0)
    with service(root) as running:
        tree = root.parent / "fallback" / NAME / "tree"
        damaged = tree.resolve()
        shutil.rmtree(tree / "a/b1")
        until(lambda: tree.resolve() != damaged)
        until(lambda: "another program changed this directory" in (root.parent / "log").read_text())
        listed = subprocess.run(
            ["rsync", "-r", running.url],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert listed.returncode == 0
        assert "a/b1/f9" in listed.stdout
    assert run_server(root, "fallback", "check", NAME).returncode == ExitCode.OK


def test_an_attr_tree_that_is_damaged_again_is_refused_for_a_while(root: Path) -> None:
    seconds = [0.0]
    messages: list[str] = []
    trees = Trees(
        root,
        load(root),
        on_update=lambda _, result: messages.append(result.action),
        on_message=messages.append,
        clock=lambda: seconds[0],
    )
    trees.refresh()
    assert messages == ["built"]
    tree = FallbackPlaces(root.parent / "fallback" / NAME).tree

    def damage(when: float) -> list[str]:
        """Return what one look at an attr tree without a folder says."""
        seconds[0] = when
        shutil.rmtree(tree / "a/b1")
        messages.clear()
        trees.look_for_changes()
        return list(messages)

    assert damage(100)[1:] == ["built"]
    _, refused = damage(399)
    assert "damaged again: clients are refused for 30 seconds" in refused
    trees.look_for_changes()
    trees.refresh()
    assert (messages[1:], (tree / "a/b1").exists()) == ([refused], False)
    assert not is_sealed(FallbackPlaces(root.parent / "fallback" / NAME))
    seconds[0] += 30
    trees.refresh()
    assert messages[1:] == [refused, "built"]
    assert damage(430)[1:] == ["built"]
