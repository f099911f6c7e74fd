"""The paths of a module's state below the state root.

- `ROOT/server.toml`
- `ROOT/modules/NAME/repository.git`: the metadata, served
- `ROOT/modules/NAME/repository.git/static`: the static files (`static`), served; the next commit
  writes a deleted one again
- `ROOT/modules/NAME/repository.git/blocks`: block indices (`store.block_indices`); a deleted one
  is not made again before its file changes
- `ROOT/modules/NAME/digests`: the digests of files; a cache, may be deleted
- `ROOT/modules/NAME/mounts`: the mount points of the last commit; may be deleted
- `ROOT/modules/NAME/listing-hashes`: the listing hashes of git objects; a cache, may be deleted
- `ROOT/modules/NAME/hardlinks`: the hardlink groups (`commit.link_record`)
- `ROOT/modules/NAME/lists`: the lists of the last commits (`commit.list_record`); without it the
  next commit scans the whole tree
- `ROOT/modules/NAME/scrub`: the progress of `scrub`, and damage (`store.scrub_record`)
- `ROOT/modules/NAME/lock`, `ROOT/modules/NAME/maintain.lock`, `ROOT/modules/NAME/publish.lock`,
  `ROOT/modules/NAME/copy.lock`, `ROOT/modules/NAME/scrub.lock`, `ROOT/modules/NAME/watch.lock`
- `ROOT/modules/NAME/drafts`: static files to upload to a bucket; may be deleted
- `ROOT/modules/NAME/watch.json`: the lag of `watch`
- `ROOT/modules/NAME/notified-commit`, `ROOT/modules/NAME/notified-scrub`: consecutive failures, and
  whether a notification was sent
- `ROOT/keys`: the keys that each commit publishes (`signing.keys`); `ROOT/keys.lock`
- `ROOT/cosigned/IDENTITY/SERIAL.git`: the commit of another upstream that was last co-signed here
  (`signing.cosigned`); `ROOT/cosigned.lock`
- `ROOT/mirrors/NAME`: the attestations of downstreams, written by `serve`, and the results of
  `probe` (`mirrors.record`)

The files of the fallback are below its own folder, usually in memory:

- `FOLDER/rsyncd.conf`, `FOLDER/rsyncd.lock-NAME`
- `FOLDER/unconfined`: the process id of the service, and why its connections are not confined
- `FOLDER/NAME/state.json`: the commit of the attr tree
- `FOLDER/NAME/root`: a symlink to the state root that owns the attr tree
- `FOLDER/NAME/real`: a symlink to the tree that holds the content
- `FOLDER/NAME/tree`: a symlink to the served generation
- `FOLDER/NAME/seal`: a symlink whose target is the time of its root
- `FOLDER/NAME/updating`: present and locked during an update in place
- `FOLDER/NAME/generations/NUMBER/`: an attr tree
- `FOLDER/NAME/lock`
"""

from pathlib import Path
from typing import NamedTuple


class ModulePlaces(NamedTuple):
    """The paths of one module's files."""

    folder: Path

    @property
    def root(self) -> Path:
        """The state root of the module."""
        return self.folder.parent.parent

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def digests(self) -> Path:
        """The digests of the module's files."""
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
        """The lists that the last commits were made from."""
        return self.folder / "lists"

    @property
    def scrub(self) -> Path:
        """The progress of `scrub`, and the damage that it found."""
        return self.folder / "scrub"

    @property
    def scrubbing(self) -> Path:
        """The only lock that `scrub` holds while it runs."""
        return self.folder / "scrub.lock"

    @property
    def lock(self) -> Path:
        """The lock that a commit holds while it runs."""
        return self.folder / "lock"

    @property
    def maintaining(self) -> Path:
        """The lock that `maintain` holds while it runs; it takes `lock` for moments only."""
        return self.folder / "maintain.lock"

    @property
    def publishing(self) -> Path:
        """The only lock that is held while the module's own static files are written."""
        return self.folder / "publish.lock"

    @property
    def copying(self) -> Path:
        """The lock that is held while copies of static files are written."""
        return self.folder / "copy.lock"

    @property
    def drafts(self) -> Path:
        """The folder of static files that are to be uploaded to a bucket."""
        return self.folder / "drafts"

    @property
    def watching(self) -> Path:
        """The lock that `watch` holds while it runs; it takes `lock` for its commits only."""
        return self.folder / "watch.lock"

    @property
    def watched(self) -> Path:
        """The lag of `watch`."""
        return self.folder / "watch.json"

    def notified(self, work: str) -> Path:
        """Return the record of consecutive failures of `work`, and of their notification."""
        return self.folder / f"notified-{work}"


def module_places(root: Path, name: str) -> ModulePlaces:
    """Return the paths of the module `name`, which must be a checked name."""
    return ModulePlaces(root / "modules" / name)


def mirrors_folder(root: Path) -> Path:
    """Return the folder of attestations and probe results."""
    return root / "mirrors"


class FallbackPlaces(NamedTuple):
    """The paths of one module's files in the fallback."""

    folder: Path

    @property
    def state(self) -> Path:
        """The commit of the attr tree, and whether an update was interrupted."""
        return self.folder / "state.json"

    @property
    def root(self) -> Path:
        """A symlink to the state root that owns the attr tree and alone may change it."""
        return self.folder / "root"

    @property
    def real(self) -> Path:
        """A symlink to the tree that holds the content."""
        return self.folder / "real"

    @property
    def tree(self) -> Path:
        """A symlink to the served generation."""
        return self.folder / "tree"

    @property
    def seal(self) -> Path:
        """A symlink with the mtime of the tree's root, which changes if the tree is emptied."""
        return self.folder / "seal"

    @property
    def updating(self) -> Path:
        """The file that an update locks while it runs; unlocked after an interrupted update."""
        return self.folder / "updating"

    @property
    def generations(self) -> Path:
        """The folder of the attr trees: one, or two while clients still read the old one."""
        return self.folder / "generations"

    @property
    def served(self) -> Path:
        """The `path` in rsyncd.conf, which exists only for a daemon with the preload library."""
        return self.folder / ".redirected"

    @property
    def lock(self) -> Path:
        """The lock that is held while the attr tree changes."""
        return self.folder / "lock"


def fallback_places(folder: Path, name: str) -> FallbackPlaces:
    """Return the paths of the module `name`, a checked name, below the fallback's `folder`."""
    return FallbackPlaces(folder / name)


def unconfined_file(folder: Path) -> Path:
    """Return the file with the service's process id and why connections are not confined."""
    return folder / "unconfined"


def fallback_lock_file(folder: Path, name: str) -> Path:
    """Return the file in which the daemon counts the clients of a module."""
    return folder / f"rsyncd.lock-{name}"
