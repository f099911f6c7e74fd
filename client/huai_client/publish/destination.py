"""DEST as one run changes it: the tree, and the trash that takes what goes.

Only composes.
"""

import time
from dataclasses import replace

from huai_client.durations import seconds
from huai_client.metadata.commit import Commit
from huai_client.mirror import Mirror
from huai_client.modes import Modes
from huai_client.publish.trash.trash import Trash
from huai_client.state.state import State
from huai_client.tree import Tree
from huai_schema.paths import ROOT


class Destination:
    """What the runs of one module change."""

    def __init__(self, mirror: Mirror) -> None:
        """Nothing is opened yet."""
        self._module = mirror.config
        self._dest = mirror.dest
        self.trash = Trash(self._dest)
        self.keeps = seconds(self._module.trash) > 0
        """Whether what goes is kept for a while."""

    def open(self, state: State) -> Tree:
        """The tree to change; what goes is kept under the serial of what is applied."""
        keep = self.trash.new_batch(state.serial) if self.keeps else None
        return Tree(self._dest, owners=self._module.owners, keep=keep)

    def before_changes(self, state: State) -> State:
        """The state before the first change to the tree: something may go to the trash."""
        return replace(state, trash=int(time.time())) if self.keeps and not state.trash else state

    def after_changes(self, tree: Tree, commit: Commit, state: State, modes: Modes) -> State:
        """Throw away what was in the trash for long enough, then set the top's attributes.

        After all else: trash and staging area lie in the top directory, and change its times.
        For the same reason it is synced once more: the tree was before.
        """
        if self.keeps or state.trash:
            since = self.trash.purge(self._module.trash, int(time.time()))
            state = replace(state, trash=since)
        if top := commit.snapshot.directory(ROOT):
            tree.set_directory(modes.of_directory(top))
        tree.sync_top()
        return state
