"""DEST as one run changes it: the tree, and the trash for deleted and replaced files.

Only composes.
"""

import os
import time
from functools import partial

from msgspec.structs import replace

from huai_client.config.mirror import Mirror
from huai_client.config.modes import Modes
from huai_client.metadata.commit import Commit
from huai_client.publish.trash import Trash
from huai_client.staging import Journals, boot_id
from huai_client.state.state import State
from huai_client.tree import Tree
from huai_client.tree.case import check_new_device
from huai_program.durable import replace_file
from huai_program.durations import seconds
from huai_schema.paths import ROOT

_SECRET_BYTES = 32


class Destination:
    """The tree, trash and journals of one module, as its runs change them."""

    def __init__(self, mirror: Mirror) -> None:
        self._module = mirror.config
        self._dest = mirror.dest
        self.trash = Trash(self._dest)
        self._secret_file = mirror.paths.staged
        self.journals = Journals(mirror.paths.patches, self._dest)
        self.keeps = seconds(self._module.trash) > 0
        """True if deleted and replaced files are kept for a while."""

    def boot(self) -> bytes:
        """Return a name of this boot that other users cannot guess.

        It is made with a secret, which is written to a file of the module if it is missing.
        """
        secret_file = self._secret_file
        try:
            secret = secret_file.read_bytes()
        except FileNotFoundError:
            secret = b""
        if len(secret) != _SECRET_BYTES:
            secret = os.urandom(_SECRET_BYTES)
            replace_file(secret_file, secret, secret_file.with_suffix(".new"), permissions=0o600)
        return boot_id(secret)

    def open(self, state: State) -> Tree:
        """Open the tree to change; with a trash, it keeps deleted and replaced files there.

        They are in a batch named by the applied serial.  The caller closes the tree.  Raises
        `DestinationError` if DEST cannot be used.
        """
        keep = partial(self.trash.new_batch, state.serial) if self.keeps else None
        return Tree(self._dest, owners=self._module.owners, keep=keep)

    def check_case(self, tree: Tree, state: State) -> State:
        """Return `state` with the device of DEST.

        Raises `DestinationError` if the device is a new one that folds case.
        """
        return replace(state, device=check_new_device(tree.handle, self._dest, state.device))

    def before_changes(self, state: State) -> State:
        """Return the state to record before the first change: the trash may then hold files."""
        return replace(state, trash=int(time.time())) if self.keeps and not state.trash else state

    def after_changes(self, tree: Tree, commit: Commit, state: State, modes: Modes) -> State:
        """Purge the trash, then set the attributes of the top directory; return the state after it.

        This comes last: trash and staging area are in the top directory, and change its times.  So
        that directory is synced to disk once more.  Raises `PathError` or `StorageError` if that
        fails.
        """
        if self.keeps or state.trash:
            since = self.trash.purge(self._module.trash, int(time.time()))
            state = replace(state, trash=since)
        if top := commit.snapshot.directory(ROOT):
            _, failure = tree.settle_directories([modes.of_directory(top)])
            if failure is not None:
                raise failure
        tree.sync_top()
        return state
