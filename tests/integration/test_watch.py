"""`huai-server watch`: the newest commit is what the tree holds, whatever happens to both."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from huai_program.locking import locked
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from tests.support.background import background
from tests.support.committing import NAME, SECONDS, run_server, server_command, server_environment
from tests.support.keys import key, write_key
from tests.support.mounting import full, needs_mounts, small_disk
from tests.support.processes import until

BURST = 20_000
FEW = (sys.executable, "-m", "tests.support.few_watches")
FAST = ("--delay", "0.2", "--at-most", "2")


class Watcher:
    """A `watch` that runs."""

    def __init__(self, root: Path, *options: str, prefix: tuple[str, ...] = ()) -> None:
        self.root = root
        with (root / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [*prefix, *server_command(root, "watch", NAME, "--json", *(options or FAST))],
                env=server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def next(self, kind: str) -> dict[str, Any]:
        """The next event of a kind, after others."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["type"] == kind:
                return event
        raise AssertionError(f"it ended before {kind}: {self.errors}")

    def in_step(self) -> None:
        """Wait until the newest commit holds the paths of the tree, with their sizes."""
        while committed(self.root) != standing(self.root):
            self.next("in_step")

    @property
    def errors(self) -> str:
        """The text on its standard error."""
        return (self.root / "stderr").read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


@contextmanager
def watching(root: Path, *options: str, prefix: tuple[str, ...] = ()) -> Iterator[Watcher]:
    watcher = Watcher(root, *options, prefix=prefix)
    try:
        yield watcher
    finally:
        watcher.process.kill()
        watcher.process.communicate()


def tree_of(root: Path) -> Path:
    return Path(load(root).module(NAME).path)


def committed(root: Path) -> dict[bytes, int]:
    """Files of the newest commit and their sizes, and directories with -1."""
    places = module_places(root, NAME)
    if not places.repository.exists():
        return {}
    repository = Repository(places.repository)
    head = repository.head()
    if head is None:
        return {}
    _, snapshot = repository.snapshot(head)
    return {entry.path: getattr(entry, "size", -1) for entry in snapshot.entries() if entry.path}


def standing(root: Path) -> dict[bytes, int]:
    """Return the same of the tree."""
    top = os.fsencode(tree_of(root))
    sizes = {}
    for folder, names, files in os.walk(top):
        for name in names:
            sizes[os.path.relpath(os.path.join(folder, name), top)] = -1
        for name in files:
            path = os.path.join(folder, name)
            sizes[os.path.relpath(path, top)] = os.lstat(path).st_size
    return sizes


def nothing_is_left(root: Path) -> None:
    """A commit by hand finds nothing that the watcher has not committed."""
    done = run_server(root, "commit", NAME, "--json")
    assert done.returncode == 0, done
    assert not json.loads(done.stdout)["changed"]


def status(root: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(run_server(root, "status", NAME, "--json").stdout)
    return event


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The state root of an upstream with a small tree."""
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_text("1")
    (tree / "c").mkdir()
    run_server(tmp_path / "state", "add", NAME, str(tree))
    return tmp_path / "state"


@pytest.fixture
def tree(root: Path) -> Path:
    return tree_of(root)


@pytest.mark.parametrize(
    ("prefix", "directories"), [((), 4), pytest.param(FEW, 0, marks=needs_mounts)]
)
def test_what_is_made_changed_renamed_and_deleted(
    root: Path, tree: Path, tmp_path: Path, prefix: tuple[str, ...], directories: int
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep" / "er").mkdir(parents=True)
    (outside / "deep" / "er" / "file").write_text("moved in")
    with watching(root, prefix=prefix) as watcher:
        event = watcher.next("watching")
        assert (event["directories"], event["unwatched"]) == (directories, 0)
        assert ("fanotify" in watcher.errors) == bool(prefix)
        assert watcher.next("in_step")["changes"] == 0
        assert committed(root) == standing(root), "it begins with a commit"
        (tree / "new").write_text("1")
        (tree / "odd\n\udcff").write_text("odd")
        watcher.in_step()
        (tree / "new").write_text("longer")
        (tree / "a" / "file").rename(tree / "c" / "renamed")
        watcher.in_step()
        outside.rename(tree / "a" / "b" / "inside")
        watcher.in_step()
        (tree / "a" / "b" / "inside" / "deep" / "er" / "more").write_text("1")
        watcher.in_step()
        (tree / "a").rename(tree / "z")
        watcher.in_step()
        (tree / "z" / "b" / "inside" / "deep" / "er" / "more").write_text("longer")
        watcher.in_step()
        shutil.rmtree(tree / "z")
        watcher.in_step()
        nothing_is_left(root)


@pytest.mark.slow
def test_a_burst_of_files(root: Path, tree: Path) -> None:
    with watching(root) as watcher:
        watcher.next("in_step")
        for number in range(BURST):
            folder = tree / f"burst-{number // 500}"
            folder.mkdir(exist_ok=True)
            (folder / str(number)).write_text("1")
        watcher.in_step()
        assert len(committed(root)) > BURST
        nothing_is_left(root)


@pytest.mark.slow
def test_more_than_the_kernel_keeps(root: Path, tree: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watching(root) as watcher:
        watcher.next("in_step")
        watcher.process.send_signal(signal.SIGSTOP)
        for number in range(most // 2):  # three events each
            (tree / "c" / str(number)).write_text("1")
        (tree / "lost" / "x").mkdir(parents=True)
        watcher.process.send_signal(signal.SIGCONT)
        watcher.next("watching")
        watcher.in_step()
        assert "max_queued_events" in watcher.errors
        (tree / "lost" / "x" / "file").write_text("1")
        watcher.in_step()
        nothing_is_left(root)


def test_a_watcher_that_was_killed_catches_up(root: Path, tree: Path) -> None:
    with watching(root) as watcher:
        watcher.next("in_step")
        assert watcher.end(signal.SIGKILL) == -signal.SIGKILL
    assert status(root)["watching"] is None
    (tree / "meanwhile" / "x").mkdir(parents=True)
    (tree / "a" / "file").unlink()
    with watching(root) as watcher:
        watcher.next("in_step")
        assert committed(root) == standing(root)


def test_there_is_one_at_a_time_and_a_signal_ends_it(root: Path) -> None:
    with watching(root) as watcher:
        watcher.next("in_step")
        assert status(root)["watching"] == watcher.process.pid
        second = run_server(root, "watch", NAME)
        assert second.returncode == 43
        assert str(watcher.process.pid) in second.stderr
        nothing_is_left(root)
        assert watcher.end() == 143
    assert status(root)["watching"] is None
    assert "Traceback" not in watcher.errors
    assert run_server(root, "watch", "nonesuch").returncode == 45


def test_status_shows_how_far_behind_it_is(root: Path, tree: Path) -> None:
    with watching(root, "--delay", "20m", "--at-most", "20m") as watcher:
        watcher.next("in_step")
        assert status(root)["behind_since"] is None
        assert "in step" in run_server(root, "status", NAME).stdout
        (tree / "new").write_text("1")
        assert watcher.next("behind")["since"] == status(root)["behind_since"]
        assert "with changes since" in run_server(root, "status", NAME).stdout
        assert b"new" not in committed(root)


def test_a_change_waits_no_longer_than_it_may(root: Path, tree: Path) -> None:
    def write(stop: threading.Event) -> None:
        while not stop.wait(0.02):
            (tree / "busy").write_text("1")

    with watching(root, "--delay", "1000", "--at-most", "1") as watcher:
        watcher.next("in_step")
        with background(write):
            for _ in range(2):
                assert watcher.next("in_step")["changes"] > 0
        assert b"busy" in committed(root)


def test_a_signature_is_renewed_in_a_quiet_tree(root: Path) -> None:
    with (root / "server.toml").open("a") as config:
        path = write_key(root / "key", key(1))
        config.write(f'\n[signing]\nkey = "{path}"\nvalidity = "4s"\n')
    with watching(root, "--delay", "20m", "--at-most", "20m") as watcher:
        for _ in range(3):
            assert watcher.next("in_step")["changes"] == 0
        assert status(root)["serial"] >= 3


@pytest.mark.parametrize("how", ["delete", "rename", "symlink"])
def test_a_root_that_is_made_again(root: Path, tree: Path, how: str) -> None:
    text = (root / "server.toml").read_text()
    link = tree.with_name("link")
    if how == "symlink":
        link.symlink_to(tree)
        (root / "server.toml").write_text(text.replace(str(tree), str(link)))
    with watching(root) as watcher:
        watcher.next("in_step")
        other = tree.with_name("other")
        other.mkdir()
        (other / "another").write_text("1")
        if how == "symlink":
            new = tree.with_name("new-link")
            new.symlink_to(other)
            new.rename(link)
        elif how == "rename":
            tree.rename(tree.with_name("old"))
            other.rename(tree)
        else:
            shutil.rmtree(tree)
            until(lambda: "no such directory" in watcher.errors or "No such file" in watcher.errors)
            assert b"a/file" in committed(root)
            other.rename(tree)
        watcher.in_step()
        assert set(committed(root)) == {b"another"}
        (tree_of(root) / "more").write_text("1")
        watcher.in_step()


def test_a_tree_that_is_emptied_stays_committed(root: Path, tree: Path) -> None:
    with watching(root) as watcher:
        watcher.next("in_step")
        for path in tree.iterdir():
            shutil.rmtree(path)
        assert watcher.next("error")["code"] == 42
        assert b"a/file" in committed(root)
        (tree / "again").write_text("1")
        watcher.in_step()


def test_another_commit_is_waited_for(root: Path, tree: Path) -> None:
    with watching(root, "--delay", "0", "--at-most", "100") as watcher:
        watcher.next("in_step")
        with locked(module_places(root, NAME).lock):
            (tree / "new").write_text("1")
            watcher.next("behind")
        watcher.in_step()


@needs_mounts
def test_a_full_disk_does_not_end_it(tmp_path: Path, tree: Path) -> None:
    with small_disk(tmp_path / "small") as state:
        run_server(state, "add", NAME, str(tree))
        with watching(state) as watcher:
            watcher.next("in_step")
            with full(state):
                (tree / "new").write_text("1")
                assert watcher.next("error")["code"] == 11
            watcher.in_step()


def test_a_copy_that_could_not_be_written_is_written_later(root: Path) -> None:
    with (root / "server.toml").open("a") as config:
        config.write(f'\n[static]\nto = ["{root}/copy"]\n')
    with watching(root) as watcher:
        watcher.in_step()
        (root / "copy").mkdir()
        until((root / "copy" / "git" / f"{NAME}.git" / "static" / "head").exists)


def test_directories_that_cannot_be_watched(root: Path, tree: Path) -> None:
    no_mark = ("setpriv", "--bounding-set=-sys_admin") if os.geteuid() == 0 else ()
    with watching(root, prefix=(*no_mark, *FEW)) as watcher:
        event = watcher.next("watching")
        assert (event["directories"], event["unwatched"]) == (2, 1)
        watcher.next("in_step")
        assert "fs.inotify.max_user_watches" in watcher.errors
        for number in range(2):
            (tree / "a" / "b" / f"unseen-{number}").write_text("1")
            (tree / "c" / f"unseen-{number}").write_text("1")
            watcher.in_step()
