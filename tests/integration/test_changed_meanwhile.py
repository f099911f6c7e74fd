"""Keys and server.toml that change while a commit waits: it does what they say when it begins."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from huai_program.configuration import ConfigError
from huai_program.locking import LockedError, locked
from huai_schema.codec.keys import read_keys
from huai_schema.errors import ExitCode
from huai_server.actions.publish import publish_module
from huai_server.config.retention import Retention
from huai_server.state.paths import module_places
from huai_server.store.maintain import maintain
from huai_server.store.repository import Repository
from tests.support.committing import NAME, run_server
from tests.support.keys import key, write_key
from tests.support.prepared import SERVER, Started
from tests.support.upstream import ENVIRONMENT, SECONDS


class Scene:
    """A signed module whose static files are copied to the folder of a web server."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.root, self.web = folder / "tree", folder / "root", folder / "web"
        self.tree.mkdir()
        self.web.mkdir()
        self.run("add", NAME, str(self.tree))
        self.write_config("")
        self.commit("first")

    @property
    def head_file(self) -> Path:
        return self.web / "git" / f"{NAME}.git/static/head"

    @property
    def repository(self) -> Repository:
        return Repository(self.root / "modules" / NAME / "repository.git")

    def write_config(self, line: str) -> None:
        """Write a server.toml with this line in the module's table."""
        signing = write_key(self.root / "key", key(1)) if not line else self.root / "key"
        (self.root / "server.toml").write_text(
            f'[signing]\nkey = "{signing}"\n[static]\nto = ["{self.web}"]\n'
            f'[modules.{NAME}]\npath = "{self.tree}"\n{line}\n'
        )

    def run(self, *arguments: str) -> None:
        done = run_server(self.root, *arguments)
        assert done.returncode == 0, done.stderr

    def commit(self, name: str) -> None:
        (self.tree / name).write_text(name)
        self.run("commit", NAME)

    @contextmanager
    def waiting(self) -> Iterator[subprocess.Popen[Any]]:
        """Start a commit that waits for its list of changes until the block ends, then for it."""
        fifo = self.root / "changes"
        os.mkfifo(fifo)
        words = ["--root", str(self.root), "commit", NAME, "--changes", str(fifo)]
        commit = Started(SERVER, words, ENVIRONMENT)
        with open(fifo, "w", encoding="utf-8") as changes:  # returns when it is read
            yield commit
            (self.tree / "listed").write_text("listed")
            changes.write("listed\n")
        commit.wait(SECONDS)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_keys_and_the_descriptor_are_the_newest_ones(scene: Scene) -> None:
    with scene.waiting() as commit:
        scene.run("key", "rotate")
        scene.write_config('content_urls = ["https://mirror.example/m"]')
        scene.commit("second")
    assert commit.returncode == 0
    head = scene.repository.head()
    assert head is not None
    assert head.info.serial == 3
    keys = read_keys(bytes.fromhex(head.tree), scene.repository)
    assert keys is not None
    assert keys.newest.version == 2
    assert scene.repository.snapshot(head)[0].content_urls == ("https://mirror.example/m",)


def test_a_module_that_became_private_is_not_published(scene: Scene) -> None:
    assert scene.head_file.exists()
    with scene.waiting() as commit:
        scene.write_config('access = "private"')
        shutil.rmtree(scene.web / "git")
    assert commit.returncode == 0
    assert not scene.head_file.exists()


def test_a_module_that_was_removed_is_neither_committed_nor_published(scene: Scene) -> None:
    with scene.waiting() as commit:
        scene.run("remove", NAME)
        shutil.rmtree(scene.web / "git")
    assert commit.returncode == ExitCode.UNKNOWN_MODULE
    assert not scene.head_file.exists()
    head = scene.repository.head()
    assert head is not None
    assert head.info.serial == 1


def test_a_publication_that_waited_writes_only_to_configured_places(scene: Scene) -> None:
    scene.write_config('access = "private"')
    shutil.rmtree(scene.web / "git")
    with pytest.raises(ConfigError, match="no longer names this place"):
        publish_module(scene.root, NAME, str(scene.web), configured=True)
    assert not scene.head_file.exists()


def test_maintenance_reads_how_long_to_keep_under_the_lock(scene: Scene) -> None:
    places = module_places(scene.root, NAME)

    def load_retention() -> Retention:
        with pytest.raises(LockedError), locked(places.lock):
            pass
        return Retention(None, 0)

    maintain(places, load_retention, now=time.time())


def test_keys_of_an_old_backup_sign_nothing(scene: Scene) -> None:
    shutil.copytree(scene.root, scene.root.parent / "backup")
    scene.run("key", "rotate")
    scene.commit("second")
    for name in ("key", "keys"):
        shutil.copy(scene.root.parent / "backup" / name, scene.root / name)
    (scene.tree / "third").write_text("third")
    done = run_server(scene.root, "commit", NAME)
    assert done.returncode == ExitCode.UNSIGNED
    assert "has version 1 of the keys, and the newest commit has version 2" in done.stderr
