"""A tree in memory that carries out plans, as strict as a file system: for tests of the planner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from huai_client.diff.candidate import Candidate, Move, Remove
from huai_client.diff.renames import Renames
from huai_client.diff.table import CandidateTable
from huai_client.plan.operations import Plan, Stage
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
    """What stands at each path."""

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
        """What an observer says of a path."""
        node = self.nodes.get(path)
        if isinstance(node, Inode):
            return File(path, len(node.content), node.mtime, node.mode)
        return node

    def candidate(
        self, path: RelPath, wanted: Entry | None, past: tuple[Entry, ...] = ()
    ) -> Candidate:
        """What a comparison says of a path."""
        node, have = self.nodes.get(path), self.have(path)
        if have is None:
            return Candidate(path, None, wanted, past)
        differing = frozenset() if wanted is None else self._differing(have, wanted)
        links = sum(other is node for other in self.nodes.values())
        found = Candidate(path, have, wanted, past, differing=differing, links=links)
        if isinstance(node, Inode) and CandidateTable.of([found]).engine.unhashed():
            return found._replace(digest=digest_of(node.content))
        return found

    def _differing(self, have: Entry, wanted: Entry) -> frozenset[str]:
        if type(have) is not type(wanted):
            return frozenset({"type"})
        names = ["mtime"] if isinstance(wanted, Symlink) else ["mtime", "mode"]
        names += ["size"] if isinstance(wanted, File) else []
        names += ["target"] if isinstance(wanted, Symlink) else []
        found = {name for name in names if getattr(have, name) != getattr(wanted, name)}
        if isinstance(wanted, File) and wanted.link is not None:
            mine, leader = self.nodes[wanted.path], self.nodes.get(wanted.link)
            found |= set() if mine is leader else {"link"}
        return frozenset(found)

    # ------------------------------------------------------------ what is done

    def execute(self, plan: Plan, contents: dict[RelPath, bytes]) -> None:
        """Carry out a plan; an `AssertionError` where a file system would refuse."""
        arrives = Renames(plan.moves).arrives
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
            self._put(path, Directory(path, DISTURBED, 0))

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
        self._put(path, node)

    def _put(self, path: RelPath, node: Node) -> None:
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


def assert_same(found: MemoryTree, wanted: MemoryTree) -> None:
    """Equal in every respect, hardlinks included."""
    assert found.nodes == wanted.nodes
    groups = [
        {
            path: min(other for other, node in tree.nodes.items() if node is mine)
            for path, mine in tree.nodes.items()
            if isinstance(mine, Inode)
        }
        for tree in (found, wanted)
    ]
    assert groups[0] == groups[1]
