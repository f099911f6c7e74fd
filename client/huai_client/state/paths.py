"""The paths of a module's state below the client's root, outside of every served tree.

- `ROOT/client.toml`
- `ROOT/upstreams.json`: upstreams that failed lately
- `ROOT/speeds.json`: the speed of services
- `ROOT/hosts/HOST`: a locked file for each connection to that host
- `ROOT/modules/NAME/state.json`: the commits that the tree was brought to
- `ROOT/modules/NAME/applied`: the same for other programs (`huai_schema.codec.applied`)
- `ROOT/modules/NAME/repository.git`: the fetched metadata
- `ROOT/modules/NAME/trusted`: the trusted keys; never goes back
- `ROOT/modules/NAME/lock`
- `ROOT/modules/NAME/delayed`: delayed deletions
- `ROOT/modules/NAME/verified`: the time at which each part of the tree was last verified
- `ROOT/modules/NAME/verifying`: the lock of `verify`
- `ROOT/modules/NAME/history`: the results of the runs, for people
- `ROOT/modules/NAME/last`: the result of the last run, and when the tree was last in step
- `ROOT/modules/NAME/changes`: the changed paths for hooks, until these have run
- `ROOT/modules/NAME/patches/`: journals of files that are changed in place
- `ROOT/modules/NAME/handovers`: calls of `huai-rsync` that the real rsync carried out
- `ROOT/modules/NAME/staged`: a secret by which the client recognizes its staging area
- `ROOT/modules/NAME/proving`: the files for a proof, while it runs
- `ROOT/modules/NAME/notified`: failures in a row, and if a notification was sent;
  `ROOT/modules/NAME/notified-signature`: the same for an expired signature
- `ROOT/modules/NAME/attested`: the last attestation (`sync.attest`)
- `ROOT/modules/NAME/checked`: the table of client.toml that passed its checks
"""

from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.applied import FILE_NAME


class ModulePlaces(NamedTuple):
    """The files of one module."""

    folder: Path

    @property
    def root(self) -> Path:
        """The client's state root."""
        return self.folder.parents[1]

    @property
    def state(self) -> Path:
        """The commits that the tree was brought to."""
        return self.folder / "state.json"

    @property
    def applied(self) -> Path:
        """The record of the state that other programs may read."""
        return self.folder / FILE_NAME

    @property
    def trusted(self) -> Path:
        """The trusted keys."""
        return self.folder / "trusted"

    @property
    def delayed(self) -> Path:
        """Delayed deletions."""
        return self.folder / "delayed"

    @property
    def history(self) -> Path:
        """The results of the runs."""
        return self.folder / "history"

    @property
    def last(self) -> Path:
        """The result of the last run."""
        return self.folder / "last"

    @property
    def changes(self) -> Path:
        """The lists of changed paths for hooks."""
        return self.folder / "changes"

    @property
    def patches(self) -> Path:
        """The journals of files that are changed in place."""
        return self.folder / "patches"

    @property
    def handovers(self) -> Path:
        """The calls of `huai-rsync` that the real rsync carried out."""
        return self.folder / "handovers"

    @property
    def staged(self) -> Path:
        """A secret by which this client recognizes its staging area."""
        return self.folder / "staged"

    @property
    def proving(self) -> Path:
        """The files for a proof: symlinks to staged files."""
        return self.folder / "proving"

    @property
    def attested(self) -> Path:
        """The last attestation, and if the upstream accepted it."""
        return self.folder / "attested"

    @property
    def checked(self) -> Path:
        """The table of client.toml that passed its checks."""
        return self.folder / "checked"

    @property
    def notified(self) -> Path:
        """Failures in a row, and if a notification was sent."""
        return self.folder / "notified"

    @property
    def notified_signature(self) -> Path:
        """The same for syncs that end well at a commit with an expired signature."""
        return self.folder / "notified-signature"

    @property
    def verified(self) -> Path:
        """The time at which each part of the tree was last verified."""
        return self.folder / "verified"

    @property
    def verifying(self) -> Path:
        """The lock of a running `verify`, which leaves `lock` to runs that change the tree."""
        return self.folder / "verifying"

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def lock(self) -> Path:
        """The lock of a running sync."""
        return self.folder / "lock"


def module_places(root: Path, name: str) -> ModulePlaces:
    """Return the paths of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)
