"""A real tree, an attr tree of it made by plain means, and a daemon that redirects between them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_server.fallback.redirect import preload_library
from huai_server.state.paths import FallbackPlaces
from tests.support.rsyncd import rsync_daemon

MODULE = "mirror"
SECONDS = 30


class Stage:
    """`real` holds the content; `places` are those of its attr tree."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.real = folder / "real"
        self.places = FallbackPlaces(folder / "fallback" / MODULE)
        self.copy = folder / "copy"
        self.real.mkdir(parents=True)

    def write(self, name: str, content: bytes) -> Path:
        """A file of the real tree."""
        path = self.real / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def list_it(self, number: str = "1") -> Path:
        """Make a generation that lists the real tree in its present state, and serve it."""
        generation = self.places.generations / number
        generation.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run(
            ["cp", "-a", "--attributes-only", "--", self.real, generation], check=True, timeout=60
        )
        for folder, names, files in os.walk(self.real, topdown=False):
            directory = generation / Path(folder).relative_to(self.real)
            for name in files:
                listed, real = directory / name, Path(folder, name)
                if not real.is_symlink():
                    os.truncate(listed, real.stat().st_size)
                    _same_times(real, listed)
            for name in names:
                if not Path(folder, name).is_symlink():
                    _same_times(Path(folder, name), directory / name)
        _same_times(self.real, generation)
        self._links(generation)
        return generation

    def _links(self, generation: Path) -> None:
        targets = {
            self.places.real: str(self.real),
            self.places.seal: str(generation.stat().st_mtime_ns),
            self.places.tree: f"generations/{generation.name}",
        }
        for link, target in targets.items():
            new = link.with_name("new")
            new.symlink_to(target)
            new.replace(link)

    @contextmanager
    def daemon(self, *, preload: Path | None = None, **settings: str) -> Iterator[str]:
        """Yields the URL of the module."""
        chosen = {"uid": "nobody", "gid": "nogroup", **settings}  # prose: a user
        modules = {MODULE: self.places.served}
        with rsync_daemon(modules, preload=preload or preload_library(), **chosen) as url:
            yield f"{url}/{MODULE}/"

    def fetch(self, url: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Rsync from `url` to `copy`."""
        command = ["rsync", "-a", "--no-o", "--no-g", *options, url, f"{self.copy}/"]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def _same_times(one: Path, other: Path) -> None:
    status = one.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))


def contents(folder: Path) -> dict[str, bytes]:
    """All regular files below `folder`."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def is_held(generation: Path) -> bool:
    """Return true if a client is served from `generation`, by the builder's check."""
    done = subprocess.run(["flock", "-n", generation, "true"], check=False, timeout=SECONDS)
    return done.returncode != 0
