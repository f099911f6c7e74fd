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
- `ROOT/modules/NAME/shards`: the digests of shards, a cache; results of shards of a killed run, and
  how the last commit was cut
- `ROOT/modules/NAME/watch.json`: the lag of `watch`
- `ROOT/modules/NAME/notified-commit`, `ROOT/modules/NAME/notified-scrub`: consecutive failures, and
  whether a notification was sent
- `ROOT/modules/NAME/run-WORK`: how the last run of a command ended (`state.runs`)
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


class ModulePlaces:
    """The paths of one module's files below `folder`, which is `ROOT/modules/NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder.parent.parent
        self.repository = folder / "repository.git"
        self.digests = folder / "digests"
        self.mounts = folder / "mounts"
        self.listing_hashes = folder / "listing-hashes"
        self.hardlinks = folder / "hardlinks"
        self.lists = folder / "lists"
        self.scrub = folder / "scrub"
        self.drafts = folder / "drafts"
        self.watched = folder / "watch.json"
        self.lock = folder / "lock"
        """The lock that a commit holds while it runs."""
        self.maintaining = folder / "maintain.lock"
        """The lock of `maintain`, which takes `lock` for moments only."""
        self.scrubbing = folder / "scrub.lock"
        """The only lock that `scrub` holds."""
        self.watching = folder / "watch.lock"
        """The lock of `watch`, which takes `lock` for its commits only."""
        self.publishing = folder / "publish.lock"
        """The only lock that is held while the module's own static files are written."""
        self.copying = folder / "copy.lock"
        """The lock that is held while copies of static files are written."""

    def notified(self, work: str) -> Path:
        """Return the record of consecutive failures of `work`, and of their notification."""
        return self.folder / f"notified-{work}"


def module_places(root: Path, name: str) -> ModulePlaces:
    """Return the paths of the module `name`, which must be a checked name."""
    return ModulePlaces(root / "modules" / name)


def mirrors_folder(root: Path) -> Path:
    """Return the folder of attestations and probe results."""
    return root / "mirrors"


class FallbackPlaces:
    """The paths of one module's files in the fallback, below `FOLDER/NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state.json"
        self.root = folder / "root"
        self.real = folder / "real"
        self.tree = folder / "tree"
        self.seal = folder / "seal"
        """A symlink with the mtime of the tree's root, which changes if the tree is emptied."""
        self.updating = folder / "updating"
        """The file that an update locks while it runs; unlocked after an interrupted update."""
        self.generations = folder / "generations"
        """The folder of the attr trees: one, or two while clients still read the old one."""
        self.served = folder / ".redirected"
        """The `path` in rsyncd.conf, which exists only for a daemon with the preload library."""
        self.lock = folder / "lock"
        """The lock that is held while the attr tree changes."""


def unconfined_file(folder: Path) -> Path:
    """Return the file with the service's process id and why connections are not confined."""
    return folder / "unconfined"


def fallback_lock_file(folder: Path, name: str) -> Path:
    """Return the file in which the daemon counts the clients of a module."""
    return folder / f"rsyncd.lock-{name}"
