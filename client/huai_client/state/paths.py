"""The paths of a module's state below the client's root, outside of every served tree.

- `ROOT/client.toml`
- `ROOT/upstreams.json`: upstreams that failed lately
- `ROOT/speeds.json`: the speed of services
- `ROOT/hosts/HOST`: a locked file for each connection to that host
- `ROOT/modules/NAME`: the files of `ModulePlaces`
"""

from pathlib import Path

from msgspec import Struct

from huai_schema.codec.applied import FILE_NAME


class _File:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, places: "ModulePlaces", _owner: type) -> Path:
        return places.folder / self._name


class ModulePlaces(Struct, frozen=True):
    """The paths of the files that the client keeps for one module."""

    folder: Path

    state = _File("state.json")
    """The commits that the tree was brought to."""
    applied = _File(FILE_NAME)
    """The record of the state that other programs may read."""
    trusted = _File("trusted")
    """The trusted keys; never goes back."""
    delayed = _File("delayed")
    """Delayed deletions."""
    history = _File("history")
    """The results of the runs, for people."""
    last = _File("last")
    """The result of the last run, and when the tree was last in step."""
    changes = _File("changes")
    """The changed paths for hooks, until these have run."""
    patches = _File("patches")
    """The journals of files that are changed in place."""
    handovers = _File("handovers")
    """The calls of `huai-rsync` that the real rsync carried out."""
    staged = _File("staged")
    """A secret by which this client recognizes its staging area."""
    proving = _File("proving")
    """The files for a proof, while it runs: symlinks to staged files."""
    attested = _File("attested")
    """The last attestation, and if the upstream accepted it."""
    checked = _File("checked")
    """The table of client.toml that passed its checks."""
    notified = _File("notified")
    """Failures in a row, and if a notification was sent."""
    notified_signature = _File("notified-signature")
    """The same for syncs that end well at a commit with an expired signature."""
    verified = _File("verified")
    """The time at which each part of the tree was last verified."""
    seen_digests = _File("seen")
    """The digests that files had when they arrived, if the upstream states none."""
    verifying = _File("verifying")
    """The lock of a running `verify`, which leaves `lock` to runs that change the tree."""
    tasks = _File("verify-tasks")
    """The results of processes that compare the tree for `verify`, while it runs."""
    repository = _File("repository.git")
    """The fetched metadata, a bare git repository."""
    lock = _File("lock")
    """The lock of a running sync."""

    @property
    def root(self) -> Path:
        """The client's state root."""
        return self.folder.parents[1]


def module_places(root: Path, name: str) -> ModulePlaces:
    """Return the paths of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)
