"""Commits as no server makes them, written into a repository by real git."""

import shutil
import subprocess
from pathlib import Path

from tests.support.committing import ENVIRONMENT, SECONDS

BRANCH = "refs/heads/main"


class Rewriting:
    """A bare repository; ids are hex."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def head(self) -> str:
        """The commit that the branch names."""
        return self.resolve(BRANCH)

    @property
    def message(self) -> str:
        """That of the newest commit."""
        return self._git("cat-file", "commit", BRANCH).decode().partition("\n\n")[2]

    def resolve(self, name: str) -> str:
        """The id of what has this name, as git-rev-parse(1) has it."""
        return self._git("rev-parse", "--verify", name).decode().strip()

    def read(self, name: str) -> bytes:
        """The content of a blob."""
        return self._git("cat-file", "blob", name)

    def write(self, kind: str, data: bytes) -> str:
        """Write an object, whatever is in it."""
        return (
            self._git("hash-object", "-t", kind, "-w", "--literally", "--stdin", stdin=data)
            .decode()
            .strip()
        )

    def tree(self, base: str = "", **items: str) -> str:
        """Write a tree: that of the name `base`, with other items; ids of blobs and trees."""
        lines = self._git("ls-tree", base).decode().splitlines() if base else []
        lines_by_name = {name: item for item, name in (line.split("\t") for line in lines)}
        kinds = {
            oid: self._git("cat-file", "-t", oid).decode().strip() for oid in {*items.values()}
        }
        for name, oid in items.items():
            kind = kinds[oid]
            lines_by_name[name] = f"{'040000' if kind == 'tree' else '100644'} {kind} {oid}"
        text = "".join(f"{item}\t{name}\n" for name, item in lines_by_name.items())
        return self._git("mktree", stdin=text.encode()).decode().strip()

    def commit(self, tree: str, message: str, *parents: str, when: int = 1_700_000_000) -> None:
        """Write a commit, and let the branch name it."""
        person = f"huai <huai@localhost> {when} +0000"
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents)]
        lines += [f"author {person}", f"committer {person}", "", message]
        self.point(self.write("commit", "\n".join(lines).encode()))

    def point(self, commit: str) -> None:
        """Let the branch name a commit, and leave it to git to serve it."""
        self._git("update-ref", BRANCH, commit)
        shutil.rmtree(self._path / "static", ignore_errors=True)

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(
            ["git", "-c", f"safe.directory={self._path}", "-C", str(self._path), *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
            timeout=SECONDS,
            check=True,
        ).stdout
