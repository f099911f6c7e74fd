"""Where the state of a module stands below the root.

- `ROOT/server.toml`
- `ROOT/modules/NAME/repository.git`: the metadata, served
- `ROOT/modules/NAME/repository.git/static`: static files (`static`), served; what is deleted there
  the next commit writes again
- `ROOT/modules/NAME/repository.git/blocks`: of large files (`store.block_indices`); what is
  deleted there is not made again before the file changes
- `ROOT/modules/NAME/digests`: of content that was read; a cache, may be deleted
- `ROOT/modules/NAME/mounts`: the mount points of the last commit; may be deleted, too
- `ROOT/modules/NAME/listing-hashes`: of the objects in the repository; a cache, may be deleted
- `ROOT/modules/NAME/hardlinks`: which names belong together (`commit.link_record`)
- `ROOT/modules/NAME/lists`: what the last commits were made from (`commit.list_record`); without
  it the next commit looks at the whole tree
- `ROOT/modules/NAME/scrub`: how far content was read again, and damage (`store.scrub_record`)
- `ROOT/modules/NAME/lock`, `ROOT/modules/NAME/maintain.lock`, `ROOT/modules/NAME/publish.lock`,
  `ROOT/modules/NAME/copy.lock`, `ROOT/modules/NAME/scrub.lock`, `ROOT/modules/NAME/watch.lock`
- `ROOT/modules/NAME/drafts`: static files before they are in a bucket; may be deleted
- `ROOT/modules/NAME/watch.json`: how far behind a `watch` is
- `ROOT/modules/NAME/notified-commit`, `ROOT/modules/NAME/notified-scrub`: failures in a row, and
  whether somebody was told
- `ROOT/keys`: whose signatures count, as each commit has them (`signing.keys`); `ROOT/keys.lock`
- `ROOT/cosigned/IDENTITY/SERIAL.git`: the commit of an upstream elsewhere that was signed here last
  (`signing.cosigned`); `ROOT/cosigned.lock`
- `ROOT/mirrors/NAME`: what downstreams attested of a module, written by `serve`, and what
  `probe` found of them (`mirrors.record`)

What the fallback serves stands below its own folder, in memory as a rule:

- `FOLDER/rsyncd.conf`, `FOLDER/rsyncd.lock-NAME`
- `FOLDER/unconfined`: the process id of the service, and why its connections are not confined
- `FOLDER/NAME/state.json`: which commit the attr tree is of
- `FOLDER/NAME/root`: a symlink to the state root that the attr tree belongs to
- `FOLDER/NAME/real`: a symlink to the tree that holds the content
- `FOLDER/NAME/tree`: a symlink to the generation that is served
- `FOLDER/NAME/seal`: a symlink that holds the time of its root
- `FOLDER/NAME/updating`: there, and locked, while an update in place runs
- `FOLDER/NAME/generations/NUMBER/`: an attr tree
- `FOLDER/NAME/lock`
"""

from pathlib import Path
from typing import NamedTuple


class ModulePlaces(NamedTuple):
    """The files of one module."""

    folder: Path

    @property
    def root(self) -> Path:
        """The state root that the module belongs to."""
        return self.folder.parent.parent

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def digests(self) -> Path:
        """The digests of content that was read."""
        return self.folder / "digests"

    @property
    def mounts(self) -> Path:
        """The mount points of the last commit, one path a line."""
        return self.folder / "mounts"

    @property
    def listing_hashes(self) -> Path:
        """The listing hashes of objects in the repository."""
        return self.folder / "listing-hashes"

    @property
    def hardlinks(self) -> Path:
        """The hardlink groups of the last commit."""
        return self.folder / "hardlinks"

    @property
    def lists(self) -> Path:
        """What the last commits were made from."""
        return self.folder / "lists"

    @property
    def scrub(self) -> Path:
        """How far content was read again, and the damage that was found."""
        return self.folder / "scrub"

    @property
    def scrubbing(self) -> Path:
        """Held by `scrub` while it runs, which needs no other lock."""
        return self.folder / "scrub.lock"

    @property
    def lock(self) -> Path:
        """Held by a commit while it runs."""
        return self.folder / "lock"

    @property
    def maintaining(self) -> Path:
        """Held by `maintain` while it runs, which needs the other lock for moments only."""
        return self.folder / "maintain.lock"

    @property
    def publishing(self) -> Path:
        """Held while the module's own static files are written, which needs no other lock."""
        return self.folder / "publish.lock"

    @property
    def copying(self) -> Path:
        """Held while copies of static files are written, for which those here do not wait."""
        return self.folder / "copy.lock"

    @property
    def drafts(self) -> Path:
        """Holds static files before they are in a bucket."""
        return self.folder / "drafts"

    @property
    def watching(self) -> Path:
        """Held by `watch` while it runs, which needs `lock` for its commits only."""
        return self.folder / "watch.lock"

    @property
    def watched(self) -> Path:
        """How far behind the tree `watch` is."""
        return self.folder / "watch.json"

    def notified(self, work: str) -> Path:
        """Failures in a row of `work`, and whether somebody was told of them."""
        return self.folder / f"notified-{work}"


def module_places(root: Path, name: str) -> ModulePlaces:
    """The places of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)


def mirrors_folder(root: Path) -> Path:
    """What mirrors said."""
    return root / "mirrors"


class FallbackPlaces(NamedTuple):
    """The files of one module of the fallback."""

    folder: Path

    @property
    def state(self) -> Path:
        """Which commit the attr tree is of, and whether an update of it was interrupted."""
        return self.folder / "state.json"

    @property
    def root(self) -> Path:
        """A symlink to the state root whose module it is; no other root may change it."""
        return self.folder / "root"

    @property
    def real(self) -> Path:
        """A symlink to the tree that holds the content."""
        return self.folder / "real"

    @property
    def tree(self) -> Path:
        """A symlink to the generation that is served."""
        return self.folder / "tree"

    @property
    def seal(self) -> Path:
        """A symlink that holds the time of the tree's root: an emptied tree has another."""
        return self.folder / "seal"

    @property
    def updating(self) -> Path:
        """There while an update runs, and locked by it; not locked: the update was interrupted."""
        return self.folder / "updating"

    @property
    def generations(self) -> Path:
        """The attr trees: one, or two while clients finish on the old one."""
        return self.folder / "generations"

    @property
    def served(self) -> Path:
        """The `path` in rsyncd.conf: it exists for a daemon that redirects, and for nobody else."""
        return self.folder / ".redirected"

    @property
    def lock(self) -> Path:
        """Held while the attr tree changes."""
        return self.folder / "lock"


def fallback_places(folder: Path, name: str) -> FallbackPlaces:
    """The places of the module `name`, a checked name, below the fallback's `folder`."""
    return FallbackPlaces(folder / name)


def unconfined_file(folder: Path) -> Path:
    """Holds the process id of the service, and why its connections are not confined."""
    return folder / "unconfined"


def fallback_lock_file(folder: Path, name: str) -> Path:
    """In which the daemon counts the clients of a module."""
    return folder / f"rsyncd.lock-{name}"
