"""A module whose static files are published, and what real git makes of them."""

import time
from pathlib import Path

from huai_schema.codec.static_files import NOTHING, Static, Step, cheapest
from huai_server.actions.publish import publish_module
from huai_server.static.folder import StaticFolder, module_folder
from huai_server.static.publish import Published, publish
from huai_server.static.target import Target
from tests.support.committing import NAME, Upstream, git
from tests.support.upstream import Upstream as SiteUpstream


def publish_to(folder: Path, up: SiteUpstream) -> None:
    """Publish the newest commit of a module below `folder`, as a commit does with [static]."""
    publish_module(up.root, up.name, str(folder))


class Publisher:
    """An upstream, and a web server's folder with its static files."""

    def __init__(self, folder: Path) -> None:
        self.upstream = Upstream(folder / "up")
        self.folder = folder / "www"
        self.folder.mkdir(parents=True)

    def repositories(self, folder: Path) -> Path:
        """Make a folder with the repository as `serve` serves it."""
        folder.mkdir()
        (folder / f"{NAME}.git").symlink_to(self.upstream.places.repository)
        return folder

    @property
    def files(self) -> Path:
        """The folder of the repository's URL."""
        return module_folder(self.folder, NAME)

    @property
    def head(self) -> Static:
        """The published head."""
        return Static.decode((self.files / "static/head").read_bytes(), "head")

    def change(self, *numbers: int) -> str:
        """Change files and commit; the new commit."""
        for number in numbers:
            self.upstream.write(f"d{number % 7}/f{number}", f"{time.monotonic_ns()}")
        return self.upstream.commit().head.commit

    def publish(self, target: Target | None = None, *, now: float | None = None) -> Published:
        """Bring the module's own files and the folder, or another place, to the newest commit."""
        retention, now = self.upstream.module.retention, now or time.time()
        target = target or StaticFolder(self.files, self.folder)
        publish(self.upstream.repository, None, retention, now=now)
        return publish(self.upstream.repository, target, retention, now=now)

    def steps(self, serial: int) -> list[Step]:
        """The way from a commit to the newest one."""
        steps, lists = list(self.head.steps), list(self.head.lists)
        for entry in lists:
            start = max((step.new for step in steps if step.old == NOTHING), default=NOTHING)
            if entry.first <= (serial or start) <= entry.last:
                listed = Static.decode(
                    (self.files / "static" / entry.file.list_name).read_bytes(), "list"
                )
                steps = list(dict.fromkeys((*steps, *listed.steps)))
                lists += listed.lists
        way = cheapest(steps, [serial], self.head.newest, request=1000)
        assert way is not None, serial
        return way

    def unpack(self, into: Path, serial: int = NOTHING) -> str:
        """Bring a bare repository that has a commit to the newest one, by real git."""
        if not into.exists():
            into.mkdir(parents=True)
            git(into, "init", "-q", "--bare", "--initial-branch=main", ".")
        for step in self.steps(serial):
            pack = (self.files / "static" / step.file.pack_name).read_bytes()
            assert len(pack) == step.file.size
            git(into, "index-pack", "--stdin", "--fix-thin", stdin=pack)
        newest = self.head.commits[self.head.newest]
        git(into, "rev-list", "--objects", f"{newest}^{{tree}}")
        return newest
