"""A bare repository with a history of changing manifests, written by git itself."""

import random
from pathlib import Path

from tests.support.http_fixtures import git

_LINES = 60


class History:
    """Manifests of a few kilobytes each, below two levels of trees."""

    def __init__(self, path: Path, manifests: int, seed: int = 1) -> None:
        self.path = path
        self._random = random.Random(seed)
        self._files = {
            f"tree/{number % 23}/{number:x}/m": [self._line() for _ in range(_LINES)]
            for number in range(manifests)
        }
        self._time = 1_700_000_000
        self._started = False
        git("init", "--quiet", "--bare", "--initial-branch=main", path)
        git("-C", path, "config", "http.uploadpack", "true")
        self.commit(0)

    def commit(self, changes: int = 1, *, orphan: bool = False) -> str:
        """Change a line in some manifests; the id of the new commit."""
        for name in self._random.sample(sorted(self._files), changes):
            lines = self._files[name]
            lines[self._random.randrange(_LINES)] = self._line()
        return self._write(f"from {self.head()}\n" if self._started and not orphan else "")

    def head(self) -> str:
        """The newest commit."""
        return git("-C", self.path, "rev-parse", "refs/heads/main")

    def point(self, commit: str) -> None:
        """Move the branch."""
        git("-C", self.path, "update-ref", "refs/heads/main", commit)

    def _write(self, origin: str) -> str:
        self._time += 1
        parts = [
            f"commit refs/heads/new\ncommitter a <a@b> {self._time} +0000\ndata 1\nx\n{origin}"
        ]
        parts.append("deleteall\n")
        for name, lines in self._files.items():
            text = "".join(lines)
            parts.append(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")
        parts.append("reset refs/heads/main\nfrom refs/heads/new\n\n")
        if self._started:
            git("-C", self.path, "update-ref", "-d", "refs/heads/new")
        git("-C", self.path, "fast-import", "--quiet", "--force", stdin="".join(parts).encode())
        self._started = True
        return self.head()

    def _line(self) -> str:
        bits, size = self._random.getrandbits(48), self._random.randrange(10**6)
        return f"lib{bits:012x}_1.{size % 7}-1_amd64.deb\t{size}\t{1_600_000_000 + size}\n"
