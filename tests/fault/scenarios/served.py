"""Scenarios of published static files, a relayed module and a fetched repository."""

import time
from dataclasses import dataclass

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository as Fetched
from huai_client.metadata.signatures import load_trusted
from huai_client.state.paths import module_places as client_places
from huai_client.state.state import load
from huai_schema.errors import HuaiError
from huai_server.actions import modules
from huai_server.config.load import add_module
from huai_server.config.tables import Module
from huai_server.state.errors import storage_errors
from huai_server.state.paths import module_places
from huai_server.static.publish import publish as publish_files
from huai_server.store.check import check_repository
from huai_server.store.disk_use import disk_use
from huai_server.store.repository import Repository
from tests.fault.killing import Ground, Hit
from tests.support.committing import Upstream, fsck
from tests.support.http_fixtures import git, running
from tests.support.keys import key
from tests.support.signed_upstream import SignedUpstream
from tests.support.static_files import Publisher
from tests.support.upstream import site


@dataclass
class Publishing:
    """Static files of all commits but the last."""

    publisher: Publisher

    def __post_init__(self) -> None:
        self.folders = [self.publisher.folder, self.publisher.upstream.places.repository]


def published(ground: Ground) -> Publishing:
    """At the end of a block of steps, so that a list of them is written as well."""
    publisher = Publisher(ground.folder)
    for number in range(63):
        publisher.change(number)
    publisher.publish()
    publisher.upstream.configure(block_index=128 << 10)
    (publisher.upstream.tree / "large").write_bytes(bytes(300_000))
    publisher.change(1, 2)
    return Publishing(publisher)


def publish(scene: Publishing) -> str:
    try:
        with storage_errors(scene.publisher.folder):
            return str(scene.publisher.publish().files)
    except HuaiError as error:
        return f"failed {error.message}"


def head_can_be_followed(scene: Publishing, hit: Hit) -> str:
    """The head names nothing that is missing."""
    assert hit.killed or hit.word == "failed" or hit.word.isdigit()
    publisher = scene.publisher
    for step in publisher.steps(0) + publisher.steps(1):
        assert (publisher.files / "static" / step.file.pack_name).stat().st_size == step.file.size
    assert publisher.head.newest in (63, 64)
    return "old" if publisher.head.newest == 63 else "new"


def head_is_new(scene: Publishing, hit: Hit) -> None:
    assert publish(scene).isdigit()
    assert scene.publisher.head.newest == 64
    head_can_be_followed(scene, hit)
    assert not list(scene.publisher.folder.rglob("tmp_*"))


class Relay:
    """A relayed module at its first serial, whose client has applied the third."""

    def __init__(self, ground: Ground) -> None:
        place = ground.enter(site(ground.folder / "site"))
        up = place.upstream()
        up.many(b"folder", 200)
        down = place.synced_downstream(up)
        self.name, self.root = down.name, ground.folder / "relay"
        self.folders = [self.root]
        self.root.mkdir()
        self.places = module_places(self.root, down.name)
        add_module(self.root, down.name, Module(path=str(down.dest), relay=str(down.root)))
        assert self.hand_over() == "done"
        for number in range(2):
            up.put(b"folder/new", b"%d" % number)
            up.commit()
        down.synced()

    def hand_over(self) -> str:
        try:
            modules.relay(self.root, self.name)
        except HuaiError as error:
            return f"{int(error.exit_code)} {error.message}"
        return "done"

    def is_old_or_new(self, _: Hit) -> str:
        repository = Repository(self.places.repository)
        history = [head.info.serial for head in repository.history()]
        assert history in ([1], [3, 1])
        fsck(self.places.repository)
        assert check_repository(self.name, repository).faults == ()
        return str(history[0])

    def is_handed_over(self, hit: Hit) -> None:
        assert self.hand_over() == "done"
        assert self.is_old_or_new(hit) == "3"
        assert self.hand_over() == "done"
        assert disk_use(self.places).unfinished == (0, 0)


class Fetching:
    """A client's repository with the first of two commits, and the server of both."""

    files = 40
    failures: tuple[str, ...] = ("11",)

    def __init__(self, ground: Ground) -> None:
        upstream = Upstream(ground.folder)
        for number in range(self.files):
            upstream.write(f"d{number % 3}/f{number}", "x" * number)
        self.commit(upstream)
        served = ground.folder / "served"
        served.mkdir()
        (served / "m.git").symlink_to(upstream.places.repository)
        self.url = f"{ground.enter(running(served)).url}/git/m.git"
        self.path = ground.folder / "repository"
        self.folders = [self.path]
        self.before = self._fetch()
        upstream.write("d1/new", "new")
        self.commit(upstream)
        self.after = upstream.head.commit

    def commit(self, upstream: Upstream) -> None:
        """Commit, and write static files."""
        upstream.commit()
        publish_files(upstream.repository, None, upstream.module.retention, now=time.time())

    def _fetch(self, *kept: str) -> str:
        store = Fetched(self.path)
        commit = store.fetch(MetadataUrl(self.url))
        assert len(list(commit.snapshot.entries())) >= self.files
        store.keep([*kept, commit.id])
        return commit.id

    def run(self) -> str:
        try:
            return self._fetch(self.before)
        except HuaiError as error:
            return f"{int(error.exit_code)} {error}"

    def refs_name_what_is_whole(self, hit: Hit) -> None:
        assert hit.killed or hit.word in (*self.failures, self.after)
        git("-C", self.path, "fsck", "--full", "--strict", "--no-dangling")

    def is_fetched(self, hit: Hit) -> None:
        assert self._fetch(self.before) == self.after
        self.refs_name_what_is_whole(hit)
        packs = list((self.path / "objects" / "pack").iterdir())
        assert {path.suffix for path in packs} == {".pack", ".idx"}
        assert not [path for path in packs if path.name.startswith("tmp")]
        assert len(packs) == 4


class FetchingByGit(Fetching):
    """The same from a server without static files."""

    failures = ("10", "11")  # git's helpers do not say what a write to a pipe failed of

    def commit(self, upstream: Upstream) -> None:
        """Commit, and leave the rest to git."""
        upstream.commit()


class Pinning:
    """The first sync of a signed module, which pins its key."""

    def __init__(self, ground: Ground) -> None:
        up = ground.site.upstream()
        up.put(b"file", b"1")
        SignedUpstream(up, ground.folder / "keys").commit(b"1")
        # By a path: no rsync outlives it.
        self.down = ground.site.downstream(up, content_urls=(f"{up.tree}/",))
        self.folders = [self.down.root, self.down.dest]

    def run(self) -> int:
        return self.down.sync().code

    def pinned_before_named(self, _: Hit) -> str:
        """The state names no commit whose keys are not kept."""
        places = client_places(self.down.root, self.down.name)
        trusted, state = load_trusted(places.trusted), load(places.state)
        if trusted is None:
            assert state.applied is None
            assert not state.attempted
            return "nothing"
        assert trusted.keys.keys == (key(1).public,)
        return "pinned"

    def is_pinned(self, _: Hit) -> None:
        self.down.synced()
        assert load_trusted(client_places(self.down.root, self.down.name).trusted) is not None
