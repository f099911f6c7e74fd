"""A tree in memory that carries out plans, as strict as a file system: for tests of the planner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from huai_client.diff.candidate import Candidate, Move, Remove
from huai_client.diff.table import CandidateTable
from huai_client.plan.operations import Plan, Stage
from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import ROOT, RelPath, parent

DISTURBED = -1
"""The time of a directory in which something happened."""


@dataclass
class Inode:
    """A file's content and attributes, under one name or several."""

    content: bytes
    mtime: int
    mode: int


Node = Inode | Symlink | Directory


@dataclass
class MemoryTree:
    """The nodes by path."""

    nodes: dict[RelPath, Node] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: list[Entry], contents: dict[RelPath, bytes]) -> "MemoryTree":
        """The tree that a snapshot describes; `contents` of the files that are no links."""
        tree = cls()
        for entry in entries:
            if not isinstance(entry, File):
                tree.nodes[entry.path] = entry
            elif entry.link is None:
                tree.nodes[entry.path] = Inode(contents[entry.path], entry.mtime, entry.mode)
        for entry in entries:
            if isinstance(entry, File) and entry.link is not None:
                tree.nodes[entry.path] = tree.nodes[entry.link]
        return tree

    # ------------------------------------------------------------ what is there

    def have(self, path: RelPath) -> Entry | None:
        """Return the entry at a path, as an observer sees it."""
        node = self.nodes.get(path)
        if isinstance(node, Inode):
            return File(path, len(node.content), node.mtime, node.mode)
        return node

    def candidate(
        self, path: RelPath, goal: Entry | None, past: tuple[Entry, ...] = ()
    ) -> Candidate:
        """Return the candidate of a path, as a comparison makes it."""
        node, have = self.nodes.get(path), self.have(path)
        if have is None:
            return Candidate(path, None, goal, past)
        differing = frozenset() if goal is None else self._differing(have, goal)
        links = sum(other is node for other in self.nodes.values())
        candidate = Candidate(path, have, goal, past, differing=differing, links=links)
        if isinstance(node, Inode) and CandidateTable.of([candidate]).engine.unhashed():
            return candidate._replace(digest=digest_of(node.content))
        return candidate

    def _differing(self, have: Entry, goal: Entry) -> frozenset[str]:
        if type(have) is not type(goal):
            return frozenset({"type"})
        names = ["mtime"] if isinstance(goal, Symlink) else ["mtime", "mode"]
        names += ["size"] if isinstance(goal, File) else []
        names += ["target"] if isinstance(goal, Symlink) else []
        differing = {name for name in names if getattr(have, name) != getattr(goal, name)}
        if isinstance(goal, File) and goal.link is not None:
            mine, leader = self.nodes[goal.path], self.nodes.get(goal.link)
            differing |= set() if mine is leader else {"link"}
        return frozenset(differing)

    # ------------------------------------------------------------ what is done

    def execute(self, plan: Plan, contents: dict[RelPath, bytes]) -> None:
        """Carry out a plan; an `AssertionError` where a file system would refuse."""
        arrives = _native.Renames(plan.moves).arrives
        self._make_room(plan, lambda path: not arrives(path))
        for move in plan.moves:
            self._move(move)
        self._make_room(plan, arrives)
        for stage in plan.stages:
            self._publish(stage, contents)
        self._remove_all(plan.removals)
        for directory in plan.directories:
            assert isinstance(self.nodes[directory.path], Directory), directory
            self.nodes[directory.path] = directory

    def _make_room(self, plan: Plan, concerns: Callable[[RelPath], bool]) -> None:
        self._remove_all([item for item in plan.clear if concerns(item.path)])
        for path in filter(concerns, plan.make):
            assert isinstance(self.nodes.get(path), Directory | None), path
            self._set_node(path, Directory(path, DISTURBED, 0))

    def _publish(self, stage: Stage, contents: dict[RelPath, bytes]) -> None:
        for file in stage.fetches:
            self._put_leaf(file.path, Inode(contents[file.path], file.mtime, file.mode))
        for file in stage.links:
            assert file.link is not None
            self._put_leaf(file.path, self._inode(file.link))
        for symlink in stage.symlinks:
            self._put_leaf(symlink.path, symlink)
        for entry in stage.attributes:
            self._set(entry)

    def _inode(self, path: RelPath) -> Inode:
        node = self.nodes[path]
        assert isinstance(node, Inode), path
        return node

    def _set(self, entry: File | Symlink) -> None:
        if isinstance(entry, Symlink):
            present = self.nodes[entry.path]
            assert isinstance(present, Symlink)
            assert present.target == entry.target
            self.nodes[entry.path] = entry
        else:
            inode = self._inode(entry.path)
            inode.mtime, inode.mode = entry.mtime, entry.mode

    def _put_leaf(self, path: RelPath, node: Node) -> None:
        assert not isinstance(self.nodes.get(path), Directory), path
        self._set_node(path, node)

    def _set_node(self, path: RelPath, node: Node) -> None:
        self._disturb(path)
        self.nodes[path] = node

    def _remove_all(self, removals: Sequence[Remove]) -> None:
        for removal in removals:
            node = self.nodes.get(removal.path)
            if node is not None:
                assert isinstance(node, Directory) == removal.directory, removal
                assert not self._below(removal.path), removal
                self._disturb(removal.path)
                del self.nodes[removal.path]

    def _move(self, move: Move) -> None:
        assert move.new not in self.nodes, move
        assert isinstance(self.nodes[move.old], Directory), move
        self._disturb(move.old)
        self._disturb(move.new)
        for path in [move.old, *self._below(move.old)]:
            node = self.nodes.pop(path)
            target = RelPath(move.new + path[len(move.old) :])
            self.nodes[target] = node if isinstance(node, Inode) else node._replace(path=target)

    def _below(self, path: RelPath) -> list[RelPath]:
        return [each for each in self.nodes if each.startswith(path + b"/")]

    def _disturb(self, path: RelPath) -> None:
        folder = self.nodes[parent(path)]
        assert isinstance(folder, Directory), path
        if path != ROOT:
            self.nodes[parent(path)] = folder._replace(mtime=DISTURBED)


def digest_of(content: bytes) -> bytes:
    """A stand-in that is as unique as the contents of a test."""
    return content.ljust(32, b"\0")


def assert_same(result: MemoryTree, expected: MemoryTree) -> None:
    """Check that two trees are equal in every respect, hardlinks included."""
    assert result.nodes == expected.nodes
    groups = [
        {
            path: min(other for other, node in tree.nodes.items() if node is mine)
            for path, mine in tree.nodes.items()
            if isinstance(mine, Inode)
        }
        for tree in (result, expected)
    ]
    assert groups[0] == groups[1]
