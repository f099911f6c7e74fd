"""A whole upstream and its downstreams: real trees, `huai-server serve`, rsyncd, `huai-client`.

    with site(folder) as place:
        up = place.upstream()            # a tree, empty; up.put(b"a/b", b"content")
        up.commit()
        down = place.downstream(up)
        assert down.sync().code == 0

One server and one rsync daemon serve all modules of a site.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click

from huai_client.cli.main import command_line
from huai_client.config import load as client_config
from huai_client.config.mirror import Mirror
from huai_client.metadata import upstream as metadata
from huai_client.plan.prepared import PreparedPlan
from huai_client.run.options import SyncOptions
from huai_client.state.paths import module_places as client_places
from huai_client.state.state import State, load
from huai_client.sync.result import Observer, SyncResult
from huai_client.sync.sync import Sync
from huai_client.transfer.listener import Listener
from huai_program.ending import conclude
from huai_server.actions.publish import publish_after_commit
from huai_server.commit.commit import commit_tree
from huai_server.commit.result import CommitResult
from huai_server.config import load as server_config
from huai_server.config.tables import Module
from huai_server.state.paths import ModulePlaces, module_places
from tests.support import json_events, prepared
from tests.support.committing import Committed
from tests.support.prepared import SOURCES, Started
from tests.support.rsyncd import rsync_daemon

SECONDS = 60
ROOT = Path(__file__).parents[2]
T0 = 1_600_000_000_123_456_789
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "PYTHONPATH": SOURCES,
    "PYTHONDONTWRITEBYTECODE": "1",
}
CLIENT = (sys.executable, "-c", "from huai_client.__main__ import main; main()")
SERVER = (sys.executable, "-c", "from huai_server.__main__ import main; main()")


class Ended(NamedTuple):
    """How a run of a program ended."""

    code: int
    out: str
    err: str

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """The lines of `--json`, each of which has to be as docs/JSON.md says."""
        events = [json.loads(line) for line in self.out.splitlines()]
        wrong = {fault for event in events for fault in json_events.faults("huai-client", event)}
        assert wrong == set()
        return [event for event in events if kind in ("", event["type"])]


@dataclass
class Upstream(Committed):
    """One module of a site."""

    name: str
    tree: Path
    root: Path
    """The server's state root."""

    def put(  # prose: half of all integration tests use it
        self, path: bytes, content: bytes = b"", *, mtime: int | None = T0, mode: int | None = None
    ) -> Path:
        """Write a file, in place if it is there."""
        place = self.at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        if mode is not None:
            place.chmod(mode)
        if mtime is not None:
            os.utime(place, ns=(mtime, mtime))
        return place

    def at(self, path: bytes) -> Path:
        """Return the path of an entry of the module."""
        return self.tree / os.fsdecode(path)

    def many(self, folder: bytes, number: int, size: int = 10) -> None:
        """Files `folder/0` and so on, each with its own content."""
        for index in range(number):
            text = b"%b/%d " % (folder, index)
            self.put(b"%b/%d" % (folder, index), (text * (size // len(text) + 1))[:size])

    def commit(self) -> CommitResult:
        """Commit and publish, as `huai-server commit` does."""
        module = server_config.load(self.root).module(self.name)
        done = commit_tree(self.name, module, self.places)
        publish_after_commit(self.root, self.name)
        return done

    @property
    def places(self) -> ModulePlaces:
        return module_places(self.root, self.name)

    def change(self, **values: object) -> None:
        """Configure the module again."""
        import msgspec

        module = server_config.load(self.root).module(self.name)
        server_config.remove_module(self.root, self.name)
        changed = msgspec.structs.replace(module, **values)
        server_config.add_module(self.root, self.name, changed)


@dataclass
class Downstream:
    """One downstream tree, with a state root of its own."""

    name: str
    dest: Path
    root: Path
    """The client's state root."""

    def run(self, *arguments: str) -> Ended:
        """`huai-client`, in this process."""
        out, err = io.StringIO(), io.StringIO()
        before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = conclude(
                    "huai-client",
                    lambda: command_line.main(
                        ["--root", str(self.root), *arguments], "huai-client", standalone_mode=False
                    ),
                    usage_errors=(click.ClickException,),
                    aborts=(KeyboardInterrupt, click.Abort),
                    as_json="--json" in arguments,
                )
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        assert "Traceback" not in err.getvalue()
        return Ended(code, out.getvalue(), err.getvalue())

    def sync(self, *options: str) -> Ended:
        """`huai-client sync`."""
        return self.run("sync", self.name, *options)

    def synced(self, *options: str) -> dict[str, Any]:
        """The result of a sync that has to go well, as JSON says it."""
        ended = self.sync("--json", *options)
        assert ended.code == 0, ended
        return ended.events("sync")[0]

    def plan(self, *options: str) -> list[tuple[str, str]]:
        """Return the operations that `huai-client plan` lists, each with its path."""
        ended = self.run("plan", self.name, "--json", *options)
        assert ended.code == 0, ended
        return [(event["operation"], event["path"]) for event in ended.events("operation")]

    def verify(self, *options: str) -> Ended:
        """`huai-client verify`."""
        return self.run("verify", self.name, *options)

    def spawn(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """`huai-client` as a process."""
        words = ["--root", str(self.root), *arguments]
        streams: Any = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        if environment:  # some of it is read as the modules are loaded
            return subprocess.Popen(
                [*CLIENT, *words], env={**ENVIRONMENT, **environment}, **streams
            )
        return Started(prepared.CLIENT, words, ENVIRONMENT, **streams)

    def killed_once(self, is_time: Callable[[], bool]) -> None:
        """Sync in a process, which is killed as soon as `is_time` says so."""
        process = self.spawn("sync", self.name)
        try:
            until = time.monotonic() + SECONDS
            while not is_time():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)

    def process(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
        """The same, until it ends."""
        return ended(self.spawn(*arguments, environment=environment))

    def observed(
        self,
        planned: Callable[[PreparedPlan], None] = lambda _: None,
        options: SyncOptions | None = None,
    ) -> SyncResult:
        """A sync in this process that calls back with its plan."""
        places = client_places(self.root, self.name)
        places.folder.mkdir(parents=True, exist_ok=True)
        module = client_config.load(self.root).module(self.name)
        mirror = Mirror.of(self.root, self.name, module)
        sync = Sync(mirror, options or SyncOptions(), metadata.Upstream.of(mirror))
        return sync.run(Observer(Listener(), planned, lambda *_: None), lambda _: None)

    @property
    def state_file(self) -> Path:
        """The file of the recorded state."""
        return client_places(self.root, self.name).state

    @property
    def repository(self) -> Path:
        """The fetched metadata."""
        return client_places(self.root, self.name).repository

    @property
    def state(self) -> State:
        """The recorded state."""
        return load(self.state_file)

    def configure(self, **values: object) -> None:
        """Change the module's configuration."""
        import msgspec

        module = client_config.load(self.root).module(self.name)
        client_config.remove_module(self.root, self.name)
        changed = msgspec.structs.replace(module, **values)
        client_config.add_module(self.root, self.name, changed)


Pair = tuple[Upstream, Downstream]


def ended(process: subprocess.Popen[str], *, seconds: float = SECONDS) -> Ended:
    """Wait for a program; how it ended."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert "Traceback" not in err, err
    return Ended(process.returncode, out, err)


@dataclass
class Site:
    """A server and a daemon, and what they serve."""

    folder: Path
    url: str
    content_url: str
    """The URL of the daemon's module; each module's tree is a folder in it."""
    server: subprocess.Popen[str]
    names: Iterator[int]

    def upstream(self, **settings: Any) -> Upstream:
        """A new module with an empty tree."""
        name = f"m{next(self.names)}"
        tree = self.folder / "trees" / name
        tree.mkdir()
        urls = (f"{self.content_url}/{name}",)
        module = Module(**{"path": str(tree), "content_urls": urls, **settings})
        server_config.add_module(self.folder / "server", name, module)
        return Upstream(name, tree, self.folder / "server")

    def downstream(self, up: Upstream, dest: Path | None = None, **settings: Any) -> Downstream:
        """A new downstream of a module, with an empty tree."""
        number = next(self.names)
        if dest is None:
            dest = self.folder / f"dest{number}"
            dest.mkdir()
        root = self.folder / f"client{number}"
        root.mkdir()
        module = client_config.Module(
            **{"url": self.url, "dest": str(dest), "timeout": 20, **settings}
        )
        client_config.add_module(root, up.name, module)
        return Downstream(up.name, dest, root)

    def synced_downstream(
        self, up: Upstream, dest: Path | None = None, **settings: Any
    ) -> Downstream:
        """Commit what `up` holds; a new downstream that is in step with it."""
        up.commit()
        down = self.downstream(up, dest, **settings)
        down.synced()
        return down


@contextmanager
def serving(root: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`huai-server serve`, and its address."""
    process = Started(
        prepared.SERVER,
        ["--root", str(root), "serve", "--json", *(options or ("--port", "0"))],
        ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield process, f"http://127.0.0.1:{json.loads(line)['port']}"
    finally:
        process.kill()
        process.wait(SECONDS)
        process.stdout.close()


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """An upstream with no modules yet, below an empty `folder`."""
    (folder / "server").mkdir(parents=True)
    (folder / "trees").mkdir()
    with (
        serving(folder / "server") as (process, url),
        rsync_daemon({"trees": folder / "trees"}) as rsync_url,
    ):
        yield Site(folder, url, f"{rsync_url}/trees", process, count(1))


def rsync_differences(up: Upstream, down: Downstream) -> str:
    """Return the changes that `rsync` itself would still make, contents compared."""
    return rsync_would(up, down, "-anciH", "--numeric-ids", "--delete", "--exclude=.~tmp~")


def rsync_would(up: Upstream, down: Downstream, *options: str, accept: Sequence[int] = (0,)) -> str:
    """Return the output of a dry run of rsync with these options."""
    done = subprocess.run(
        ["rsync", *options, f"{up.tree}/", f"{down.dest}/"],
        capture_output=True,
        text=True,
        errors="backslashreplace",
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode in accept, done.stderr
    return done.stdout


def assert_equal(up: Upstream, down: Downstream) -> None:
    """Both trees are the same for rsync and, with sub-second times, for us; nothing is left."""
    assert rsync_differences(up, down) == ""
    verified = down.verify("--content")
    assert verified.code == 0, verified
    assert not (down.dest / ".~tmp~").exists()


def refresh(path: Path) -> None:
    """Empty a folder."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)
    path.mkdir()
