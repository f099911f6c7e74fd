"""The tree of a module, with a trash where one is configured.

Only composes.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from huai_client.config import Module
from huai_client.durations import seconds
from huai_client.metadata.repository import Commit
from huai_client.modes import Modes
from huai_client.publish.trash.bin import Bin
from huai_client.publish.trash.keeping import Keeping
from huai_client.state.state import State
from huai_client.tree import Tree
from huai_schema.paths import ROOT

T = TypeVar("T")


class Ground:
    """What the runs of one module change."""

    def __init__(self, module: Module) -> None:
        """Nothing is opened yet."""
        self._module = module
        self._dest = Path(module.dest)
        self.bin = Bin(self._dest)
        self.keeps = seconds(module.trash) > 0
        """Whether what goes is kept for a while."""

    def tree(self, state: State) -> Tree:
        """The tree to change; what goes is kept under the serial of what is applied."""
        owners = self._module.owners
        if not self.keeps:
            return Tree(self._dest, owners=owners)
        return Keeping(self._dest, owners=owners, serial=state.serial)

    def begun(self, state: State) -> State:
        """The state before the first change to the tree: something may go to the trash."""
        return replace(state, trash=int(time.time())) if self.keeps and not state.trash else state

    def settled(self, tree: Tree, commit: Commit, state: State, modes: Modes) -> State:
        """Throw away what was in the trash for long enough, then set the top's attributes.

        After all else: trash and staging area lie in the top directory, and change its times.
        For the same reason it is synced once more: the tree was before.
        """
        if self.keeps or state.trash:
            since = self.bin.purge(self._module.trash, int(time.time()))
            state = replace(state, trash=since)
        if top := commit.snapshot.directory(ROOT):
            tree.set_directory(modes.of_directory(top))
        tree.sync_top()
        return state

    def with_room(self, work: Callable[[], T], told: Callable[[str], None]) -> T:
        """Do `work`; if the disk is short, at the expense of the trash, which is told."""
        return self.bin.making_room(work, told)
