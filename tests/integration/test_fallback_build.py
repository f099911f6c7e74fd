"""Attr trees: built, updated, proved; equal to the tree, whatever it holds."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from huai_program.locking import LockedError, locked
from huai_schema.errors import ExitCode
from huai_server.config.tables import ModuleFallback
from huai_server.fallback.kind import AttrTreeError
from tests.support.attr_trees import Fallback, list_entries
from tests.support.committing import NAME, run_server
from tests.support.mounting import needs_mounts
from tests.support.processes import until
from tests.support.redirecting import is_held
from tests.support.unprivileged import as_nobody


@pytest.fixture(params=["sparse", pytest.param("erofs", marks=needs_mounts)])
def module(request: pytest.FixtureRequest, short_path: Path) -> Fallback:
    module = Fallback(short_path)
    module.configure(fallback=ModuleFallback(kind=request.param))
    return module


@pytest.fixture(autouse=True)
def _unmounted(short_path: Path) -> Iterator[None]:
    """Unmount what a test has mounted."""
    yield
    for line in reversed(Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()):
        point = line.split(" ")[1]
        if point.startswith(f"{short_path}/"):
            subprocess.run(["umount", "-l", point], check=True, timeout=30)


def fill(tree: Path) -> None:
    """One of everything."""
    (tree / "folder/deep/er").mkdir(parents=True)
    for name in (
        b"plain",
        b"new\nline",
        b"tab\t",
        b"\xff\xfe",
        b"%41",
        b"x" * 255,
        b"-n",
        b".hidden",
    ):
        Path(os.fsdecode(os.path.join(os.fsencode(tree), b"folder", name))).write_bytes(name)
    (tree / "closed").write_text("x")
    (tree / "program").write_text("x")
    (tree / "program").chmod(0o4755)
    (tree / "sticky").mkdir()
    (tree / "sticky").chmod(0o1777)
    (tree / "shut").mkdir()
    (tree / "shut/inside").write_text("x")
    (tree / "large").touch()
    os.truncate(tree / "large", 5 << 40)
    os.link(tree / "folder/plain", tree / "folder/deep/linked")
    os.link(tree / "folder/plain", tree / "a-first-name")
    (tree / "folder/out").symlink_to("../../../etc/passwd")
    (tree / "folder/odd").symlink_to(os.fsdecode(b"\xff\n"))
    (tree / "empty").mkdir()
    os.utime(tree / "large", ns=(0, -12_345_678_901))
    os.utime(tree / "folder/odd", ns=(0, 1_234_567_890_123_456_789), follow_symlinks=False)
    if os.geteuid() == 0:  # only root reads files without a mode
        (tree / "closed").chmod(0)
        (tree / "shut").chmod(0)
        os.chown(tree / "program", 70_000, 80_000)
        (tree / "program").chmod(0o4755)


def test_it_lists_what_the_tree_holds(module: Fallback) -> None:
    fill(module.tree)
    module.commit()
    built = module.ensure()
    entries = len(list_entries(module.tree))
    assert (built.action, built.entries, built.changes) == ("built", entries, entries)
    assert built.memory > 100 * entries
    module.assert_equal()
    assert module.ensure().action == "none"
    assert module.attr_tree.is_current()
    assert (module.attr.tree / "folder/plain").read_bytes() == bytes(len("plain"))


def test_an_update_equals_a_build(module: Fallback) -> None:
    fill(module.tree)
    module.commit()
    module.ensure()
    (module.tree / "folder/deep").rename(module.tree / "elsewhere")
    (module.tree / "closed").unlink()
    (module.tree / "closed").mkdir()
    (module.tree / "closed/now").write_text("a folder")
    shutil.rmtree(module.tree / "sticky")
    (module.tree / "sticky").symlink_to("was a folder")
    (module.tree / "empty").rmdir()
    (module.tree / "empty").write_text("a file")
    (module.tree / "a-first-name").unlink()
    (module.tree / "program").chmod(0o700)
    (module.tree / "shut").chmod(0o711)
    module.write("folder/plain", "other content")
    module.commit()
    action = "updated" if module.module.fallback.kind == "sparse" else "built"
    assert module.ensure().action == action
    module.assert_equal()
    assert not is_left(module)


def test_several_modules_in_one_call(short_path: Path) -> None:
    root = short_path / "state"
    for name in ("a", "b", "without"):
        (short_path / name).mkdir()
        (short_path / name / "file").touch()
        assert run_server(root, "add", name, str(short_path / name)).returncode == 0
    assert run_server(root, "commit", "--all").returncode == 0
    with (root / "server.toml").open("a") as config:
        config.write('[modules.without.fallback]\nkind = "off"\n')
    for command in ("build", "check"):
        for words in (("--all",), ("a", "b")):
            done = run_server(root, "fallback", command, *words)
            assert done.returncode == 0, done.stderr
            assert [line[:2] for line in done.stdout.splitlines()] == ["a:", "b:"]


def is_left(module: Fallback) -> list[str]:
    """Return the names in the folder that do not belong there."""
    expected = {"state.json", "root", "real", "tree", "seal", "generations", "lock"}
    return [path.name for path in module.attr.folder.iterdir() if path.name not in expected]


def test_what_was_cut_or_changed_by_hand_is_built_anew(module: Fallback) -> None:
    fill(module.tree)
    module.commit()
    module.ensure()
    module.write("more")
    module.commit()
    state = module.attr.state.read_text()
    module.attr.state.write_text(state.replace('"target":null', f'"target":"{"0" * 40}"'))
    assert not module.attr_tree.is_current()
    assert module.ensure().action == "built"
    module.assert_equal()
    module.attr.state.write_text("nonsense")
    assert module.ensure().action == "built"
    module.attr.tree.unlink()
    assert module.ensure().action == "built"
    module.assert_equal()
    assert len(list(module.attr.generations.iterdir())) == 1


def test_check_finds_what_is_wrong(short_path: Path) -> None:
    module = Fallback(short_path)
    fill(module.tree)
    module.commit()
    module.ensure()
    tree = module.attr.tree
    (tree / "folder/plain").chmod(0o600)
    os.truncate(tree / "large", 7)
    os.utime(tree / "folder/deep/er", ns=(0, 0))
    (tree / "empty").rmdir()
    (tree / "folder/stranger").write_text("x")
    report = module.prove()
    faults = dict(line.split(": ", 1) for line in report.shown)
    assert f"{module.attr.seal}" in faults
    assert {path: fault for path, fault in faults.items() if not path.startswith("/")} == {
        ".": "has another mtime",
        "a-first-name": "has another mode",
        "empty": "missing",
        "folder": "has another mtime",
        "folder/deep/er": "has another mtime",
        "folder/deep/linked": "has another mode",
        "folder/plain": "has another mode",
        "folder/stranger": "not in the commit",
        "large": "has another mtime, size",
    }
    assert report.differences == len(report.shown)
    module.ensure(rebuild=True)
    module.assert_equal()


def test_an_old_generation_stays_while_a_client_holds_it(module: Fallback) -> None:
    module.write("f")
    module.commit()
    module.ensure()
    (old,) = module.attr.generations.iterdir()
    with subprocess.Popen(["flock", "-s", old, "sleep", "60"]) as holding:
        try:
            until(lambda: is_held(old))
            module.ensure(rebuild=True)
            assert min(module.attr.generations.iterdir()) == old
            assert (old / "f").exists()
        finally:
            subprocess.run(["pkill", "-P", str(holding.pid)], check=False, timeout=30)
    module.ensure()
    assert old not in module.attr.generations.iterdir()


@needs_mounts
def test_the_kind_may_change(short_path: Path) -> None:
    module = Fallback(short_path)
    fill(module.tree)
    module.commit()
    kinds: list[Literal["sparse", "erofs"]] = ["sparse", "erofs", "sparse"]
    for kind in kinds:
        module.configure(fallback=ModuleFallback(kind=kind))
        assert not module.attr_tree.is_current()
        assert module.ensure().action == "built"
        module.assert_equal(kind)
        assert len(list(module.attr.generations.iterdir())) == 1
    assert module.ensure().action == "none"


def test_its_folder_is_open_to_all_whatever_the_umask(short_path: Path) -> None:
    module = Fallback(short_path)
    module.write("f")
    module.commit()
    before = os.umask(0o077)
    try:
        module.ensure()
    finally:
        os.umask(before)
    for folder in (module.attr.folder.parent, module.attr.folder):
        assert folder.stat().st_mode & 0o777 == 0o755, folder


def test_every_look_at_it_finds_old_or_new_entries(disk_path: Path) -> None:
    """And none is missing while another takes its place, however large the folder.

    On a tmpfs the library that is loaded into rsync sees to that, test_redirect.py.
    """
    module = Fallback(disk_path)
    for number in range(5000):
        module.write(f"large/{number:04}", mtime=1_000_000)
    module.commit()
    module.ensure()
    for number in range(0, 5000, 2):
        module.write(f"large/{number:04}", "longer", mtime=2_000_000)
    module.commit()
    looks = 0
    with ThreadPoolExecutor(1) as thread:
        update = thread.submit(module.ensure)
        while looks == 0 or not update.done():
            looks += 1
            names = os.listdir(module.attr.tree / "large")
            assert len(set(names)) == 5000
            for name in names:
                status = os.lstat(module.attr.tree / "large" / name)
                assert (status.st_size, status.st_mtime) in ((0, 1_000_000), (6, 2_000_000)), name
    assert update.result().changes in (2500, 2501)
    module.assert_equal()


def test_another_user_cannot_write_into_it(short_path: Path) -> None:
    """The uploader of a mirror owns directories of the attr tree, too."""
    short_path.chmod(0o755)
    module = Fallback(short_path)
    module.write("incoming/file")
    (module.tree / "incoming").chmod(0o777)
    module.commit()
    for action in ("built", "none"):
        assert module.ensure().action == action
        assert stat.S_IMODE(module.attr.generations.stat().st_mode) == 0o700
        if os.geteuid() == 0:
            with pytest.raises(AssertionError, match="PermissionError"):
                as_nobody((module.attr.tree / "incoming/new").mkdir)
        module.attr.generations.chmod(0o755)  # as older versions made it
    module.assert_equal()


@needs_mounts
def test_no_room(short_path: Path) -> None:
    module = Fallback(short_path)
    for number in range(200):
        module.write(f"d/{number}")
    module.commit()
    module.attr.folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "nr_inodes=150", "tmpfs", str(module.attr.folder)]
    subprocess.run(mount, check=True, timeout=30)
    with pytest.raises(AttrTreeError, match="as many inodes") as refused:
        module.ensure()
    assert refused.value.exit_code == ExitCode.FALLBACK
    remount = ["mount", "-o", "remount,nr_inodes=215", str(module.attr.folder)]
    subprocess.run(remount, check=True, timeout=30)
    assert module.ensure().action == "built"
    before = list_entries(module.attr.tree)
    for number in range(100):
        module.write(f"e/{number}")
    module.commit()
    with pytest.raises(AttrTreeError, match="not enough room"):
        module.ensure()
    # Each entry is an old or a new one.
    now, real = list_entries(module.attr.tree), list_entries(module.tree)
    for path, listed in now.items():
        assert path == b"." or listed in (before.get(path), real.get(path)), path
    remount[-2] = "remount,nr_inodes=0"
    subprocess.run(remount, check=True, timeout=30)
    assert module.ensure().action == "built"
    module.assert_equal()


def test_one_at_a_time(short_path: Path) -> None:
    module = Fallback(short_path)
    module.write("f")
    module.commit()
    module.attr.folder.mkdir(parents=True)
    with locked(module.attr.lock), pytest.raises(LockedError):
        module.ensure()


def test_the_commands(short_path: Path) -> None:
    tree, root = short_path / "tree", short_path / "state"
    tree.mkdir()
    (tree / "f").write_text("x")
    run_server(root, "add", NAME, str(tree))
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'[fallback]\nfolder = "{short_path}/fallback"\n\n{text}')
    assert run_server(root, "fallback", "build", NAME).returncode == ExitCode.FALLBACK
    assert run_server(root, "fallback", "check", NAME).returncode == ExitCode.FALLBACK
    run_server(root, "commit", NAME)
    assert "built" in run_server(root, "fallback", "build", NAME).stdout
    (tree / "g").write_text("y")
    assert "attr tree updated: serial 2" in run_server(root, "commit", NAME).stdout
    assert "equal" in run_server(root, "fallback", "check", NAME).stdout
    (short_path / "fallback" / NAME / "tree/f").unlink()
    assert run_server(root, "fallback", "check", NAME, "--json").returncode == ExitCode.FALLBACK
    assert run_server(root, "remove", NAME).returncode == 0
    assert not (short_path / "fallback" / NAME).exists()
