"""The tree, upstream and downstream that the figures share, each made at its first use.

Everything lies below one folder and ends with `close`.  The two modules are the same tree:
`plain` is committed without digests, `digests` with.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.bench import trees
from tests.bench.disk_reads import ControlGroup, DiskReads, NotCountedError, drop_caches
from tests.bench.line import line_to
from tests.bench.processor import ProcessorTime
from tests.bench.programs import Program, serving
from tests.bench.spending import Spent, spend
from tests.support.certificate import make_certificate
from tests.support.nginx import nginx
from tests.support.rsyncd import rsync_daemon

MODULES = {"plain": "off", "digests": "now"}
CHURN = 0.005
_BYTES = 100
"""The average bytes of a file."""


class Stand:
    """As a context manager."""

    def __init__(
        self,
        folder: Path,
        entries: int,
        rounds: int,
        *,
        cold: bool,
        line: bool = False,
        cases: frozenset[str] = frozenset(),
        minutes: float = inf,
        pages: Path | None = None,
    ) -> None:
        self.folder = folder
        self.entries = entries
        self.rounds = rounds
        self.cold = cold
        self.line = line
        """True if downstreams connect through a simulated line."""
        self.cases = cases
        """The requested cases of a figure; all if empty."""
        self.minutes = minutes
        """After which what goes on and on ends."""
        self.pages = pages or folder
        """The folder of plots."""
        self.server = Program("huai-server", folder / "server")
        self._seed = 0
        self._closing = contextlib.ExitStack()
        # Trees are made by a process of their own: see `spending`.
        self._maker = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._closing.callback(self._maker.shutdown)

    def __enter__(self) -> Self:
        """Make no tree yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        self._closing.close()

    def chosen(self, cases: Iterable[str]) -> list[str]:
        """Return the requested ones of the `known` cases, or all."""
        names = list(cases)
        if unknown := self.cases.difference(names):
            sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
        return [name for name in names if not self.cases or name in self.cases]

    @cached_property
    def tree(self) -> Path:
        """The mirror's own tree."""
        root = self.folder / "tree"
        show_progress(f"making a tree of {self.entries} entries")
        self._maker.submit(trees.make_tree, root, self.entries, 1, _BYTES).result()
        return root

    def make(self, maker: Callable[..., object], root: Path, *arguments: object) -> None:
        """Make, or change, a tree of another shape."""
        show_progress(f"making {root.name}")
        self._maker.submit(maker, root, *arguments).result()

    def churn(self, *, clustered: bool = False, share: float = CHURN) -> trees.Churn:
        """Change a share of the tree, otherwise every time."""
        self._seed += 1
        change = trees.update if clustered else trees.churn
        return self._maker.submit(change, self.tree, share, self._seed).result()

    def change(self, change: Callable[[Path], None]) -> None:
        """Change the tree by a function of a module."""
        self._maker.submit(change, self.tree).result()

    @cached_property
    def modules(self) -> list[str]:
        """The modules, added and committed once."""
        for name, digest in MODULES.items():
            self.server.run("add", name, self.tree, "--digest", digest)
            self.commit(name)
        return list(MODULES)

    def commit(self, module: str) -> int:
        """Commit; how many entries it added, removed or changed, and directories it moved."""
        counts = json.loads(self.server.run("commit", module, "--json"))["counts"]
        return int(counts["added"] + counts["removed"] + counts["changed"] + counts["moved"])

    @cached_property
    def server_reads(self) -> DiskReads | None:
        """Counts what `huai-server serve` reads; None if this machine cannot."""
        return self._reads("server")

    @cached_property
    def daemon_reads(self) -> DiskReads | None:
        """Counts what the rsync daemon reads."""
        return self._reads("rsyncd")

    @cached_property
    def processor(self) -> ProcessorTime | None:
        """Counts CPU time; None if this machine cannot."""
        try:
            return self._closing.enter_context(ProcessorTime("all"))
        except NotCountedError as reason:
            show_progress(f"CPU time of servers is not counted: {reason}")
            return None

    @contextlib.contextmanager
    def counting_reads(self, reads: dict[str, int], name: str) -> Iterator[None]:
        """Add what is read from the disk inside to `reads[name]`, if the cache is cold."""
        counter = self._reads(name.partition(" ")[0]) if self.cold else None
        with _joined(counter):
            yield
        reads[name] += counter.now().operations if counter else 0

    def counted(self) -> contextlib.AbstractContextManager[None]:
        """Let `spend` count the servers that are started inside."""
        return _joined(self.processor)

    def spend(self, command: Sequence[str], *, until: bytes | None = None) -> Spent:
        """Run a command; its CPU time includes that of servers, if there is a `processor`."""
        return (self.processor.spend if self.processor else spend)(command, until=until)

    @cached_property
    def port(self) -> int:
        """The port of the running `huai-server serve`, which has both modules."""
        assert self.modules
        return self.server_port

    @cached_property
    def server_port(self) -> int:
        """The port of the running `huai-server serve`."""
        with _joined(self.server_reads):
            return self._far(self._closing.enter_context(serving(self.server)).port)

    @cached_property
    def daemon(self) -> str:
        """The URL of the tree at a stock rsync daemon."""
        with _joined(self.daemon_reads):
            return self.rsync_daemon("tree", self.tree)

    @cached_property
    def client(self) -> Program:
        """A downstream in step with module `digests`, in `folder/ours`."""
        dest = self.copy("ours")
        client = Program("huai-client", self.folder / "client")
        url = f"http://127.0.0.1:{self.port}"
        client.run("add", "digests", url, dest, "--content-url", self.daemon)
        client.run("sync", "digests", "--quiet")
        return client

    def first_client(
        self, module: str, maker: Callable[..., object], *arguments: object, served: bool = False
    ) -> tuple[Program, str]:
        """A downstream without modules, and the daemon's URL of `module`, which `maker` makes.

        `served`: `huai-server serve` has its content too.
        """
        tree = self.folder / module
        self.make(maker, tree, *arguments)
        content = ("--serve-content",) if served else ()
        self.server.run("add", module, tree, "--digest", "now", *content)
        self.commit(module)
        return Program("huai-client", self.folder / "first"), self.rsync_daemon(module, tree)

    def copy(self, name: str, tree: Path | None = None) -> Path:
        """Copy a tree (None: the mirror's) in its present state, without a daemon."""
        show_progress(f"copying it to {name}")
        dest = self.folder / name
        subprocess.run(["cp", "-a", str(tree or self.tree), str(dest)], check=True)
        return dest

    def rest(self) -> None:
        """Before every measurement: nothing is dropped unless that was asked for."""
        if self.cold:
            drop_caches()

    def rsync_daemon(self, module: str, tree: Path, *, exclude: str = "") -> str:
        """The URL of `tree` at a stock rsync daemon, without the paths in `exclude`."""
        url = self._closing.enter_context(rsync_daemon({module: tree}, exclude=exclude))
        return f"rsync://127.0.0.1:{self._far(urlsplit(url).port or 0)}/{module}"

    def web_server(self, tree: Path, *, http2: bool) -> str:
        """The URL of `tree` at an nginx, under TLS; its clients must trust `certificate`."""
        server = self._closing.enter_context(nginx(tree, tls=self.certificate, http2=http2))
        return f"https://127.0.0.1:{self._far(server.port)}"

    @cached_property
    def certificate(self) -> tuple[Path, Path]:
        """The files of the web servers' certificate and its key."""
        return make_certificate(self.folder)

    def _far(self, port: int) -> int:
        """Return the port of this side of the line for `port`, if there is a line."""
        return self._closing.enter_context(line_to(port)) if self.line else port

    def _reads(self, name: str) -> DiskReads | None:
        try:
            return self._closing.enter_context(DiskReads(name, self.folder))
        except NotCountedError as reason:
            show_progress(f"disk reads are not counted: {reason}")
            return None


def show_progress(text: str) -> None:
    """Print the progress."""
    sys.stderr.write(f"bench: {text}\n")


def _joined(group: ControlGroup | None) -> contextlib.AbstractContextManager[None]:
    return group.joined() if group else contextlib.nullcontext()
