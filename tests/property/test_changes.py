"""A commit by a correct list of changes gives the tree of a full scan."""

import os
import shutil
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.committing import Upstream
from tests.support.examples import examples
from tests.support.memory_disk import memory_folder

NAMES = ["a", "b", "c", "d", "e", "x -> y", "new\nline", "\\#101", "\udcff", " lead", "**"]
"""Names of created files, among them those that rsync escapes."""


class Tree:
    """A tree that changes, and the list of its changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched: list[str] = []
        self._time = 1_700_000_000

    def everything(self) -> list[Path]:
        walk = os.walk(self.root)
        return sorted(Path(top) / name for top, *names in walk for name in chain(*names))

    def directories(self) -> list[Path]:
        return [self.root, *(each for each in self.everything() if is_directory(each))]

    def files(self) -> list[Path]:
        return [each for each in self.everything() if each.is_file() and not each.is_symlink()]

    def touch(self, *paths: Path, below: bool = False) -> None:
        self.touched += (
            str(path.relative_to(self.root)) + ("/**" if below else "") for path in paths
        )

    def stamp(self, path: Path) -> None:
        """Set a unique time, because the clock of files is coarse."""
        self._time += 7
        os.utime(path, (self._time, self._time + 0.25), follow_symlinks=False)


def is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def chosen(paths: list[Path], number: int) -> Path | None:
    return paths[number % len(paths)] if paths else None


def new_place(tree: Tree, one: int, other: int) -> Path | None:
    directory = chosen(tree.directories(), one)
    assert directory is not None
    place = directory / NAMES[other % len(NAMES)]
    return None if os.path.lexists(place) else place


def create(tree: Tree, one: int, other: int) -> None:
    if place := new_place(tree, one, other):
        place.write_text(f"{one}")
        tree.stamp(place)
        tree.touch(place)


def make_directory(tree: Tree, one: int, other: int) -> None:
    if place := new_place(tree, one, other):
        place.mkdir()
        for number in range(other % 150):
            (place / f"inside{number}").write_text("")
        tree.touch(place, *place.iterdir())


def make_symlink(tree: Tree, one: int, other: int) -> None:
    if place := new_place(tree, one, other):
        place.symlink_to(f"target -> {one}")
        tree.touch(place)


def write(tree: Tree, one: int, other: int) -> None:
    """Rewrite a file in place: all of its names change."""
    if file := chosen(tree.files(), one):
        file.write_text("x" * (other % 100))
        tree.stamp(file)
        tree.touch(file)


def replace(tree: Tree, one: int, other: int) -> None:
    """Replace a file by a new one: a name leaves its group."""
    if file := chosen(tree.files(), one):
        part = file.with_name(".part")
        part.write_text("y" * (other % 100))
        part.rename(file)
        tree.touch(file)


def change_mode(tree: Tree, one: int, other: int) -> None:
    path = chosen([each for each in tree.everything() if not each.is_symlink()], one)
    if path:
        path.chmod(0o755 if other % 2 else 0o775)
        tree.touch(path)


def delete(tree: Tree, one: int, _: int) -> None:
    if path := chosen(tree.everything(), one):
        if is_directory(path):
            shutil.rmtree(path)
        else:
            path.unlink()
        tree.touch(path)


def rename(tree: Tree, one: int, other: int) -> None:
    path, place = chosen(tree.everything(), one), new_place(tree, other, one)
    if path and place and not place.is_relative_to(path):
        path.rename(place)
        tree.touch(path)
        tree.touch(place, below=is_directory(place))


def link(tree: Tree, one: int, other: int) -> None:
    file, place = chosen(tree.files(), one), new_place(tree, other, one)
    if file and place:
        os.link(file, place)
        tree.touch(file, place)


def turn_into_directory(tree: Tree, one: int, other: int) -> None:
    if file := chosen(tree.files(), one):
        file.unlink()
        file.mkdir()
        (file / NAMES[other % len(NAMES)]).write_text("")
        tree.touch(file / NAMES[other % len(NAMES)])


def turn_into_leaf(tree: Tree, one: int, other: int) -> None:
    """Replace a directory by a leaf; the list has the paths below, and not the directory."""
    if directory := chosen(tree.directories()[1:], one):
        below = sorted(directory.iterdir())
        shutil.rmtree(directory)
        if other % 2:
            directory.symlink_to(".")
        else:
            directory.write_text("")
        tree.touch(below[other % len(below)] if below else directory)


CHANGES: list[Callable[[Tree, int, int], None]] = [
    create, make_directory, make_symlink, write, replace, change_mode, delete, rename, link, link,
    turn_into_directory, turn_into_leaf,
]  # fmt: skip

changes = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.integers(0, 10_000), st.integers(0, 10_000)), max_size=8
)


def plant(root: Path) -> None:
    """Create directories of each kind of layout: inlined, with an own tree, in pieces."""
    for number in range(300):
        name = root / "crowd" / f"f{number}"
        name.parent.mkdir(exist_ok=True)
        name.write_text("")
    for number in range(100):
        directory = root / "pool" / f"p{number % 3}" / f"d{number}"
        directory.mkdir(parents=True)
        for leaf in "xyz"[: number % 4]:
            (directory / leaf).write_text(leaf)
    (root / "small").mkdir()
    (root / "small" / "file").write_text("f")
    os.link(root / "crowd" / "f7", root / "small" / "link")
    os.link(root / "crowd" / "f7", root / "pool" / "third")
    (root / "sym").symlink_to("pool/p1")


@examples(20)
@given(st.lists(changes, min_size=1, max_size=3))
def test_the_tree_is_that_of_a_whole_scan(
    rounds: list[list[tuple[Callable[..., None], int, int]]],
) -> None:
    with tempfile.TemporaryDirectory(prefix="h", dir=memory_folder()) as folder:
        Path(folder).chmod(0o755)
        upstream = Upstream(Path(folder))
        plant(upstream.tree)
        upstream.commit()
        tree = Tree(upstream.tree)
        for done in rounds:
            tree.touched = []
            for change, one, other in done:
                change(tree, one, other)
            result = upstream.commit_listed(*tree.touched)
            assert result.listed is not None
            assert result.listed.scan_cause == ""
        totals = upstream.head.info.totals
        complete = upstream.commit()
        assert not complete.changed
        assert not complete.missed
        assert complete.head.info.totals == totals
        assert upstream.check().faults == ()
