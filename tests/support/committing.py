"""A small upstream for tests: a tree, a state root, and everything that is done with them."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import ChangeLists, read_lists
from huai_server.commit.commit import audit_tree, commit_tree
from huai_server.commit.next_commit import CommitSettings
from huai_server.commit.result import AuditResult, CommitOptions, CommitResult
from huai_server.config.tables import Module
from huai_server.export.into_tree import ExportOfTree
from huai_server.state.paths import ModulePlaces, module_places
from huai_server.store.check import CheckReport, check_repository
from huai_server.store.repository import Head, Repository
from tests.support.prepared import SERVER, ran
from tests.support.unprivileged import as_nobody

NAME = "m"
SECONDS = 60
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
_PROGRAM = "from huai_server.cli.main import main; main()"


class Committed:
    """The metadata of one module."""

    @property
    def places(self) -> ModulePlaces:
        """The paths of the module's state."""
        raise NotImplementedError

    @property
    def repository(self) -> Repository:
        """Its metadata repository, opened."""
        return Repository(self.places.repository)

    @property
    def head(self) -> Head:
        """The newest commit; there is one."""
        head = self.repository.head()
        assert head is not None
        return head


class Upstream(Committed):
    """One module below a folder."""

    def __init__(self, folder: Path, tree: Path | None = None) -> None:
        """The tree is made if it is not there yet."""
        self.tree = tree or folder / "tree"
        self.tree.mkdir(parents=True, exist_ok=True)
        self.root = folder / "state"
        self.module = Module(str(self.tree))

    @property
    def places(self) -> ModulePlaces:
        return module_places(self.root, NAME)

    @property
    def entries_id(self) -> str:
        """The id of the tree of entries in the newest commit: equal for equal trees."""
        return self.repository.snapshot(self.head)[1].tree.hex()

    def configure(self, **values: object) -> None:
        """Change the module's configuration."""
        self.module = msgspec.structs.replace(self.module, **values)

    def write(self, path: str, content: str = "", mtime: float | None = None) -> Path:
        """A file of the tree, with all directories above it."""
        place = self.tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        if mtime is not None:
            os.utime(place, (mtime, mtime))
        return place

    def commit(
        self,
        *,
        allow_empty: bool = False,
        accept_mounts: bool = False,
        wait: float = 0,
        at: Path | None = None,
        lists: Callable[[Path], ChangeLists] | None = None,
        export: ExportOfTree | None = None,
    ) -> CommitResult:
        """Commit the tree."""
        options = CommitOptions(allow_empty, accept_mounts, wait, at=at, lists=lists)
        settings = CommitSettings(self.module, export=export)
        return commit_tree(NAME, self.module, self.places, options, lambda: settings)

    def audit(self) -> AuditResult:
        """Compare the tree with the last commit."""
        return audit_tree(NAME, self.module, self.places)

    def commit_listed(
        self, *paths: str | bytes, spelling: str = "nul", export: ExportOfTree | None = None
    ) -> CommitResult:
        """Commit what stands at these paths."""
        source = self.root.parent / "changes"
        source.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
        return self.commit(lists=partial(read_lists, [str(source)], spelling), export=export)

    def commit_as_nobody(self) -> CommitResult:
        """Commit in a process without privileges, to whom the state belongs."""
        self.give_state_to_nobody()
        return as_nobody(self.commit)

    def give_state_to_nobody(self) -> None:
        """Give the state to the user that `as_nobody` runs as."""
        self.places.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            for path in [self.root, *self.root.rglob("*")]:
                os.chown(path, 65534, 65534)

    def check(self) -> CheckReport:
        """Read everything back."""
        return check_repository(NAME, self.repository)

    def prove_sound(self) -> None:
        """In the eyes of huai and of git."""
        assert self.check().faults == ()
        fsck(self.places.repository)

    def entries(self) -> dict[RelPath, Entry]:
        """Return the entries of the newest commit."""
        _, snapshot = self.repository.snapshot(self.head)
        return {entry.path: entry for entry in snapshot.entries()}

    def file(self, path: str) -> File:
        """A regular file of the newest commit."""
        entry = self.entries()[RelPath(os.fsencode(path))]
        assert isinstance(entry, File)
        return entry

    def paths(self) -> set[str]:
        """The paths of all entries but the root."""
        return {os.fsdecode(path) for path in self.entries() if path}

    def links(self) -> dict[str, str]:
        """Each hardlink's path with its leader's."""
        return {
            os.fsdecode(entry.path): os.fsdecode(entry.link)
            for entry in self.entries().values()
            if isinstance(entry, File) and entry.link is not None
        }

    def git(self, *arguments: str) -> str:
        """Run git in the module's repository and return its output."""
        return git(self.places.repository, *arguments)


def git(repository: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """Run git in a repository and return its output; it has to succeed."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={repository}", "-C", str(repository), *arguments],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return (done.stdout + done.stderr).decode().strip()


def fsck(repository: Path) -> None:
    """Check with git that a repository has no fault, except dangling objects."""
    complaints = git(repository, "fsck", "--full", "--strict", "--no-dangling").splitlines()
    assert not [line for line in complaints if not line.startswith("notice: ")], complaints


def server_command(root: Path, *arguments: str) -> list[str]:
    """The command line of `huai-server`, without an installed script."""
    return [sys.executable, "-c", _PROGRAM, "--root", str(root), *arguments]


def server_environment() -> dict[str, str]:
    """Return the environment in which the program finds its packages."""
    return {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)}


def run_server(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `huai-server` to its end; a traceback is a failure, whatever the test expects."""
    done = ran(SERVER, ["--root", str(root), *arguments], server_environment(), SECONDS)
    assert "Traceback" not in done.stderr, done.stderr
    return done
