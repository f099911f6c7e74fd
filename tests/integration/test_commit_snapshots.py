"""Commits of snapshots, and from what their file system says has changed: btrfs-progs make both."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from huai_server.commit.change_lists import read_lists
from huai_server.commit.result import CommitResult
from tests.support.committing import NAME, Upstream, run_server, server_command, server_environment
from tests.support.mounting import needs_mounts
from tests.support.processes import run_program

pytestmark = needs_mounts

HOOK = Path(__file__).parents[2] / "hooks" / "snapshot-and-commit"
SECONDS = 60
NAMES = ("a", "b c", "é\\", "new\nline", "tab\t", "dest=x", "\\040", "o257-7-0", "\x1b[0m")


def run(*command: str | Path) -> bytes:
    done = subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.PIPE)
    return done.stdout


class Snapshots:
    """A subvolume of btrfs in which the tree of a module is, and its snapshots."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` is the path of the tree in the subvolume."""
        self.folder = folder
        self._place = place
        run("btrfs", "subvolume", "create", folder / "live")
        self.up = Upstream(folder, folder / "live" / place)
        shutil.rmtree(folder / "state", ignore_errors=True)
        self.up.root = folder / "state"
        self._count = 0

    def make(self) -> Path:
        """Take a snapshot, and return the tree in it."""
        self._count += 1
        run("btrfs", "subvolume", "snapshot", "-r", self.folder / "live", self._folder())
        return self._folder() / self._place

    def dump(self) -> bytes:
        """Return what btrfs says has changed between the last two."""
        before, after = self._folder(self._count - 1), self._folder()
        send = ["btrfs", "send", "--quiet", "--no-data", "-p", str(before), str(after)]
        with subprocess.Popen(send, stdout=subprocess.PIPE) as stream:
            receive = ["btrfs", "receive", "--dump"]
            dump = subprocess.run(receive, stdin=stream.stdout, check=True, stdout=subprocess.PIPE)
        return dump.stdout

    def commit_changes(self) -> CommitResult:
        """Commit a new snapshot by the changes since the last one."""
        at, changes = self.make(), self.folder / "changes"
        changes.write_bytes(self.dump())
        roots = [Path(self._place)] if self._place else []
        lists = partial(read_lists, [str(changes)], "btrfs-dump", *roots)
        return self.up.commit(at=at, lists=lists)

    def _folder(self, number: int | None = None) -> Path:
        return self.folder / f"s {self._count if number is None else number}"


@pytest.fixture
def disk(short_path: Path) -> Iterator[Path]:
    image, point = short_path / "image", short_path / "disk"
    image.touch()
    os.truncate(image, 256 << 20)
    point.mkdir()
    run("mkfs.btrfs", "-q", image)
    run("mount", "-o", "loop", image, point)
    yield point
    run("umount", "--lazy", point)


@pytest.fixture(params=["", "srv/mirror"])
def snapshots(request: pytest.FixtureRequest, disk: Path) -> Snapshots:
    return Snapshots(disk, request.param)


def prove_complete(snapshots: Snapshots, result: CommitResult) -> None:
    """Check that a commit by lists has what a scan of its snapshot finds."""
    assert result.listed is not None
    assert result.listed.scan_cause == ""
    scanned = snapshots.up.commit(at=snapshots._folder() / snapshots._place)
    assert (scanned.changed, scanned.missed, scanned.hashed_files) == (False, 0, 0)


def test_each_snapshot_is_read_once(snapshots: Snapshots) -> None:
    up = snapshots.up
    for name in ("d/a", "d/b", "e"):
        up.write(name, name)
    first = snapshots.make()
    up.write("later", "not in the snapshot")
    assert up.commit(at=first).hashed_files == 3
    assert b"later" not in up.entries()
    assert up.commit(at=snapshots.make()).hashed_files == 1
    assert up.commit().hashed_files == 0, "the live tree has the same files"
    result = up.commit(at=first)
    assert (result.hashed_files, result.counts.removed) == (0, 1)
    up.prove_sound()


def test_another_directory_is_no_snapshot(disk: Path) -> None:
    snapshots = Snapshots(disk, "")
    up = snapshots.up
    up.write("d/a", "a")
    up.commit()
    run("btrfs", "subvolume", "create", disk / "other")
    (disk / "other" / "d").mkdir()
    shutil.copy2(up.tree / "d/a", disk / "other" / "d/a")
    assert up.commit(at=disk / "other").hashed_files == 1


def test_what_btrfs_lists_is_all_that_changed(snapshots: Snapshots) -> None:
    up = snapshots.up
    for name in ("d/e/f", "old/1", "gone/z", "mode", "content", "linked", "kept/1"):
        up.write(name, name)
    up.commit(at=snapshots.make())
    (up.tree / "d").rename(up.tree / "dd")
    up.write("d/new", "another directory of the old name")
    for name in NAMES:
        up.write(f"names/{name}", name)
    (up.tree / "old/1").rename(up.tree / "old/2")
    shutil.rmtree(up.tree / "gone")
    os.link(up.tree / "linked", up.tree / "link")
    (up.tree / "mode").chmod(0o600)
    up.write("content", "other")
    (up.tree / "symlink").symlink_to("a b")
    result = snapshots.commit_changes()
    assert result.listed is not None
    lists = result.listed.lists
    assert (lists.refused, lists.is_cut, result.listed.unknown) == (0, False, 0)
    prove_complete(snapshots, result)
    up.prove_sound()


def change(tree: Path, choose: random.Random, number: int) -> None:
    """Make one change of any kind in a tree."""
    places = sorted(tree.rglob("*"))
    folders = [tree, *(each for each in places if each.is_dir())]
    new = choose.choice(folders) / f"{choose.choice(NAMES)}{number}"
    old = choose.choice(places) if places else None
    kind = choose.randrange(6)
    if old is None or kind == 0:
        new.mkdir()
    elif kind == 1:
        new.write_text(str(number))
    elif kind == 2 and old not in new.parents:
        old.rename(new)
    elif kind == 3:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    elif kind == 4 and old.is_file():
        os.link(old, new)
    elif old.is_file():
        old.write_text(str(number))


@pytest.mark.parametrize("seed", range(2))
def test_any_changes_at_all(disk: Path, seed: int) -> None:
    """Renames in renamed directories, new directories under old names, links."""
    snapshots = Snapshots(disk, "tree" if seed % 2 else "")
    choose = random.Random(seed)
    snapshots.up.write("kept", "kept")
    snapshots.up.commit(at=snapshots.make())
    for step in range(8):
        for number in range(25):
            change(snapshots.up.tree, choose, step * 100 + number)
        (snapshots.up.tree / "kept").write_text(str(step))
        result = snapshots.commit_changes()
        prove_complete(snapshots, result)
    snapshots.up.prove_sound()


def test_the_command(snapshots: Snapshots) -> None:
    up, place = snapshots.up, snapshots._place
    up.write("a", "a")
    assert run_server(up.root, "add", NAME, str(up.tree)).returncode == 0
    done = run_server(up.root, "commit", NAME, "--at", str(snapshots.make()))
    assert (done.returncode, "2 added" in done.stdout) == (0, True), done
    up.write("b", "b")
    at = snapshots.make()
    up.write("c", "c")
    changes = snapshots.folder / "changes"
    changes.write_bytes(snapshots.dump())
    options = ["--changes", str(changes), "--changes-format", "btrfs-dump"]
    if place:
        options += ["--changes-prefix", place]
    done = run_server(up.root, "commit", NAME, "--at", str(at), *options)
    assert (done.returncode, "1 added" in done.stdout, done.stderr) == (0, True, ""), done
    changes.write_text(f"{at}/b\n")
    done = run_server(up.root, "commit", NAME, "--at", str(at), "--changes", str(changes))
    assert (done.returncode, done.stderr) == (0, ""), "a path in the snapshot is one of the tree"
    done = run_server(up.root, "commit", "--all", "--at", str(at))
    assert (done.returncode, "name one module" in done.stderr) == (1, True), done
    done = run_server(up.root, "commit", NAME, "--at", str(at / "absent"))
    assert (done.returncode, "no such directory" in done.stderr) == (42, True), done


class Hook:
    """`hooks/snapshot-and-commit` for a module whose tree is committed by nothing else."""

    def __init__(self, up: Upstream, programs: Path) -> None:
        """`programs` is a folder on the path."""
        programs.mkdir(exist_ok=True)
        command = " ".join(f"'{part}'" for part in server_command(up.root))
        self.up, self._programs = up, programs
        self.program("huai-server", f'exec {command} "$@"')
        assert run_server(up.root, "add", NAME, str(up.tree)).returncode == 0

    def program(self, name: str, text: str) -> None:
        """Write a shell script."""
        (self._programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self._programs / name).chmod(0o755)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = server_environment()
        environment["PATH"] = f"{self._programs}:{environment['PATH']}"
        return run_program(HOOK, NAME, *map(str, arguments), env=environment, timeout=SECONDS)


def test_the_hook_keeps_one_snapshot_of_btrfs(disk: Path, short_path: Path) -> None:
    up = Snapshots(disk, "srv/m").up
    hook = Hook(up, short_path / "programs")
    up.write("a", "a")

    def commit() -> tuple[int, bool, int]:
        """Return the exit code, and what says how it was committed."""
        done = hook.run(disk / "live", "srv/m", "--json")
        return done.returncode, '"scanned": null' in done.stderr, len([*disk.glob("huai-m-*")])

    assert commit() == (0, False, 1)
    (up.tree / "a").rename(up.tree / "b")
    assert commit() == (0, True, 1)
    assert set(up.entries()) == {b"", b"b"}
    hook.program("huai-server", "exit 41")
    snapshots = [*disk.glob("huai-m-*")]
    assert commit() == (41, False, 1)
    assert [*disk.glob("huai-m-*")] == snapshots, "the next commit has to find the same changes"
    assert hook.run().returncode == 1


FAKE_ZFS = """\
case $1 in
  list) ls "$LIVE/.zfs/snapshot" | sed 's|^|tank/m@|' ;;
  get) echo "$LIVE" ;;
  snapshot) mkdir "$LIVE/.zfs/snapshot/${2#*@}"; cp -a "$LIVE/srv" "$LIVE/.zfs/snapshot/${2#*@}" ;;
  destroy) rm -r "$LIVE/.zfs/snapshot/${2#*@}" ;;
  diff) printf 'R\\tF\\t%s/srv/a\\t%s/srv/b\\\\0040c\\n' "$LIVE" "$LIVE" ;;
esac"""
"""As much as the hook uses; a `diff` always prints the same."""


def test_the_hook_names_snapshots_of_zfs(short_path: Path) -> None:
    live = short_path / "live"
    up = Upstream(short_path, live / "srv")
    hook = Hook(up, short_path / "programs")
    (live / ".zfs" / "snapshot").mkdir(parents=True)
    hook.program("zfs", f"LIVE='{live}'\n{FAKE_ZFS}")
    up.write("a", "a")
    assert hook.run("tank/m", "srv").returncode == 0
    (up.tree / "a").rename(up.tree / "b c")
    up.write("unlisted")
    done = hook.run("tank/m", "srv")
    assert (done.returncode, set(up.entries())) == (0, {b"", b"b c"}), done
    assert len([*live.glob(".zfs/snapshot/*")]) == 1
