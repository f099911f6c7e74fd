"""A mirror that hands on what it applied: its client's tree, a server of its own, its downstreams.

with relaying(up, down, folder) as relay:
    down.sync()
    relay.relayed()
    below = relay.downstream()
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from huai_client.config import load as client_config
from huai_server.config import load as server_config
from huai_server.config.tables import Module
from huai_server.state.paths import ModulePlaces, module_places
from huai_server.store.repository import Repository
from tests.support.prepared import SERVER, Started
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import ENVIRONMENT, SECONDS, Downstream, Ended, ended, serving


@dataclass
class Relay:
    """One relayed module."""

    down: Downstream
    """The downstream that has the tree."""
    root: Path
    """The server's state root."""
    url: str
    """The server's URL."""
    content_url: str
    """The tree's URL."""
    server: subprocess.Popen[str]
    numbers: Iterator[int]

    @property
    def name(self) -> str:
        return self.down.name

    @property
    def places(self) -> ModulePlaces:
        return module_places(self.root, self.name)

    @property
    def repository(self) -> Repository:
        return Repository(self.places.repository)

    @property
    def serial(self) -> int:
        """The serial of the commit that is served, or 0."""
        if not self.places.repository.exists():
            return 0
        head = self.repository.head()
        return head.info.serial if head else 0

    def run(self, *arguments: str) -> Ended:
        """`huai-server` as a process."""
        pipe = subprocess.PIPE
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True}
        words = ["--root", str(self.root), *arguments]
        return ended(Started(SERVER, words, ENVIRONMENT, **streams))

    def handed(self, *options: str) -> None:
        """`huai-server relay`, which has to go well."""
        done = self.relayed(*options)
        assert done.code == 0, done

    def relayed(self, *options: str) -> Ended:
        """`huai-server relay`, after the server's own one if that is at work."""
        return self.run("relay", self.name, "--wait", str(SECONDS), *options)

    def downstream(self, **settings: Any) -> Downstream:
        """A downstream of the relay, with an empty tree."""
        folder = self.root.parent / f"below{next(self.numbers)}"
        return below(folder, self.name, self.url, settings)


def below(folder: Path, name: str, url: str, settings: dict[str, Any]) -> Downstream:
    """A downstream of the server at `url`; all that it has is in `folder`."""
    (folder / "tree").mkdir(parents=True)
    (folder / "client").mkdir()
    values = {"url": url, "dest": str(folder / "tree"), "timeout": 20, **settings}
    client_config.add_module(folder / "client", name, client_config.Module(**values))
    return Downstream(name, folder / "tree", folder / "client")


@contextmanager
def relaying(down: Downstream, folder: Path, **settings: Any) -> Iterator[Relay]:
    """A server and an rsync daemon for the tree of `down`; what they have is in `folder`."""
    root = folder / "relay"
    root.mkdir(parents=True)
    with rsync_daemon({"tree": down.dest}) as daemon:
        values: dict[str, Any] = {
            "path": str(down.dest),
            "content_urls": (f"{daemon}/tree",),
            "relay": str(down.root),
            **settings,
        }
        server_config.add_module(root, down.name, Module(**values))
        with serving(root) as (process, url):
            yield Relay(down, root, url, f"{daemon}/tree", process, count(1))
