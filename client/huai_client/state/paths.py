"""Where the state of a module stands below the client's root, outside of every served tree.

- `ROOT/client.toml`
- `ROOT/upstreams.json`: upstreams that failed lately
- `ROOT/speeds.json`: how fast those were that upstreams name
- `ROOT/hosts/HOST`: a locked file for each connection to that host
- `ROOT/modules/NAME/state.json`: what the tree was brought to
- `ROOT/modules/NAME/applied`: the same for other programs (`huai_schema.codec.applied`)
- `ROOT/modules/NAME/repository.git`: the metadata that was fetched
- `ROOT/modules/NAME/trusted`: whose signatures count; never goes back
- `ROOT/modules/NAME/lock`
- `ROOT/modules/NAME/delayed`: delayed deletions
- `ROOT/modules/NAME/verified`: when each part of the tree was last verified
- `ROOT/modules/NAME/verifying`: the lock of `verify`
- `ROOT/modules/NAME/history`: how the runs ended, for people
- `ROOT/modules/NAME/last`: how the last run ended, and when the tree was last in step
- `ROOT/modules/NAME/changes`: what hooks are told of, until they were
- `ROOT/modules/NAME/patches/`: journals of files that are changed where they stand
- `ROOT/modules/NAME/handovers`: calls of `huai-rsync` that the real rsync carried out
- `ROOT/modules/NAME/staged`: a secret by which the client knows its own staging area
- `ROOT/modules/NAME/proving`: what a proof is shown, while it runs
- `ROOT/modules/NAME/notified`: failures in a row, and whether somebody was told;
  `ROOT/modules/NAME/notified-signature`: the same of a signature that is over
- `ROOT/modules/NAME/attested`: what was attested last (`sync.attest`)
- `ROOT/modules/NAME/checked`: which table of client.toml was found right
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
        """What the tree was brought to."""
        return self.folder / "state.json"

    @property
    def applied(self) -> Path:
        """The record of the state that other programs may read."""
        return self.folder / FILE_NAME

    @property
    def trusted(self) -> Path:
        """Whose signatures count."""
        return self.folder / "trusted"

    @property
    def delayed(self) -> Path:
        """Delayed deletions."""
        return self.folder / "delayed"

    @property
    def history(self) -> Path:
        """How the runs ended."""
        return self.folder / "history"

    @property
    def last(self) -> Path:
        """How the last run ended."""
        return self.folder / "last"

    @property
    def changes(self) -> Path:
        """The lists of changed paths that hooks get."""
        return self.folder / "changes"

    @property
    def patches(self) -> Path:
        """The journals of files that are changed where they stand."""
        return self.folder / "patches"

    @property
    def handovers(self) -> Path:
        """The calls of `huai-rsync` that the real rsync carried out."""
        return self.folder / "handovers"

    @property
    def staged(self) -> Path:
        """A secret by which this client knows its own staging area."""
        return self.folder / "staged"

    @property
    def proving(self) -> Path:
        """What a proof is shown: symlinks to staged files."""
        return self.folder / "proving"

    @property
    def attested(self) -> Path:
        """What was attested last, and whether the upstream took it."""
        return self.folder / "attested"

    @property
    def checked(self) -> Path:
        """Which table of client.toml was found right."""
        return self.folder / "checked"

    @property
    def notified(self) -> Path:
        """Failures in a row, and whether somebody was told of them."""
        return self.folder / "notified"

    @property
    def notified_signature(self) -> Path:
        """The same of syncs that end well at a commit whose signature is over."""
        return self.folder / "notified-signature"

    @property
    def verified(self) -> Path:
        """When each part of the tree was last verified."""
        return self.folder / "verified"

    @property
    def verifying(self) -> Path:
        """Held by a `verify` while it runs; it leaves `lock` to those that change the tree."""
        return self.folder / "verifying"

    @property
    def repository(self) -> Path:
        """The bare git repository."""
        return self.folder / "repository.git"

    @property
    def lock(self) -> Path:
        """Held by a sync while it runs."""
        return self.folder / "lock"


def module_places(root: Path, name: str) -> ModulePlaces:
    """The places of the module `name`, a checked name."""
    return ModulePlaces(root / "modules" / name)
