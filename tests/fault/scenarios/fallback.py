"""The attr tree of the fallback: it is built, updated under a client that deletes, and deleted."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from huai_schema.errors import HuaiError
from huai_server.fallback.attr.generations import discard_unserved
from huai_server.fallback.redirect import preload_library
from huai_server.fallback.sparse.maker import delete_tree
from huai_server.state.paths import FallbackPlaces
from tests.fault.killing import Ground, Hit
from tests.support.attr_trees import Fallback, list_entries
from tests.support.committing import NAME, SECONDS
from tests.support.redirecting import contents
from tests.support.rsyncd import rsync_daemon

REFUSED, VANISHED, PARTIAL = 5, 24, 23


@dataclass
class Listing:
    """A committed tree whose attr tree is that of the commit before, or missing."""

    module: Fallback
    before: dict[bytes, tuple[object, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.folders = [self.module.attr.folder.parent]
        tree = self.module.attr.tree
        self.before = list_entries(tree) if tree.exists() else {}


def files(folder: Path) -> Fallback:
    folder.chmod(0o755)
    module = Fallback(folder)
    for number in range(15):
        module.write(f"d{number % 3}/f{number}", f"content {number}")
    module.commit()
    return module


def change(module: Fallback) -> None:
    """New, changed, moved, deleted, a link of each kind, and another kind of entry."""
    tree = module.tree
    module.write("d1/new", "new")
    module.write("d1/f1", "changed content")
    module.write("d2/f5", "changed content")
    (tree / "d1/to").symlink_to("f1")
    (tree / "d1/linked").hardlink_to(tree / "d1/f4")
    (tree / "d2/f2").unlink()
    (tree / "d0/f0").unlink()
    (tree / "d0/f3").unlink()
    (tree / "d0/f3").mkdir()
    module.write("d0/f3/inside", "was a file")
    (tree / "d1").rename(tree / "renamed")
    module.commit()


def to_build(ground: Ground) -> Listing:
    return Listing(files(ground.folder))


def run(scene: Listing) -> str:
    try:
        return scene.module.ensure().action
    except HuaiError as error:
        return error.message


def each_entry_is_old_or_new(scene: Listing, _: Hit) -> str:
    """But directories have the time of the change until they are given theirs."""
    module = scene.module
    if not module.attr.tree.exists():
        return "nothing"
    after = list_entries(module.tree)
    for path, entry in list_entries(module.attr.tree).items():
        is_folder = entry[1] is None
        assert is_folder or entry in (scene.before.get(path), after.get(path)), path
    return "listed"


def is_listed(scene: Listing, _: Hit) -> None:
    assert run(scene) in ("built", "updated", "none")
    scene.module.assert_equal()


class Served(Listing):
    """An attr tree to update, a daemon that serves it, and a copy of what it was for a client."""

    def __init__(self, ground: Ground) -> None:
        module = files(ground.folder)
        module.ensure()
        super().__init__(module)
        modules = {NAME: module.attr.served}
        self.url = ground.enter(rsync_daemon(modules, preload=preload_library()))
        self.url += f"/{NAME}/"
        self.copy = ground.folder / "before"
        copy(self.url, self.copy)
        self.client = ground.folder / "client"
        change(module)


def copy(url: str, place: Path) -> int:
    """Run what a mirror's plain client runs."""
    command = ["rsync", "-aH", "--delete", url, f"{place}/"]
    return subprocess.run(command, timeout=SECONDS, capture_output=True, check=False).returncode


def a_client_loses_nothing(scene: Served, hit: Hit) -> str:
    """It keeps each file that the mirror has, and is refused a tree that is cut."""
    each_entry_is_old_or_new(scene, hit)
    module, client = scene.module, scene.client
    shutil.rmtree(client, ignore_errors=True)
    shutil.copytree(scene.copy, client, symlinks=True)
    code = copy(scene.url, client)
    assert code in (0, REFUSED, VANISHED, PARTIAL)
    assert contents(scene.copy).keys() & contents(module.tree).keys() <= contents(client).keys()
    if code == REFUSED:
        assert contents(client) == contents(scene.copy)
    # A mark without a lock is what a daemon goes by.
    assert code == REFUSED or not module.attr.updating.exists()
    return "refused" if code == REFUSED else "served" if code == 0 else "partly"


def a_client_gets_all(scene: Served, hit: Hit) -> None:
    is_listed(scene, hit)
    assert copy(scene.url, scene.client) == 0
    assert contents(scene.client) == contents(scene.module.tree)


class Deletion:
    """Generations that are not served any more."""

    def __init__(self, ground: Ground) -> None:
        self.places = FallbackPlaces(ground.folder / "m")
        self.folders = [self.places.generations]
        for name in ("1/a/b", "1/c"):
            (self.places.generations / name).mkdir(parents=True)
        (self.places.generations / "1/a/b/file").touch()

    def run(self) -> str:
        discard_unserved(self.places, delete_tree)
        return "done"

    def something_is_left(self, _: Hit) -> bool:
        return any(self.places.generations.iterdir())

    def all_is_gone(self, _: Hit) -> None:
        self.run()
        assert not any(self.places.generations.iterdir())
