"""A directory in which names that differ by case are the same loses nothing."""

import os
from pathlib import Path

import pytest

from huai_client.tree import DestinationError, PathError, View
from huai_client.tree.case import check_new_device, check_removals
from huai_client.tree.handles import DIRECTORY
from huai_schema.paths import RelPath, basename, join, parent


class FoldingView(View):
    """A tree with directories that fold case: a name leads to the one that differs by case."""

    def __init__(self, dest: Path, *folders: bytes) -> None:
        super().__init__(dest)
        self._folding = set(folders)
        self.looks = 0

    def stat(self, path: RelPath) -> os.stat_result | None:
        self.looks += 1
        folder = parent(path)
        if folder not in self._folding:
            return super().stat(path)
        names = {name.lower(): name for kind in self.listing(folder) for name in kind}
        name = names.get(basename(path).lower())
        return None if name is None else super().stat(join(folder, name))


def paths(*names: bytes) -> list[RelPath]:
    return [RelPath(name) for name in names]


@pytest.fixture(name="dest")
def some_files(tmp_path: Path) -> Path:
    for folder in ("sub", "Dir"):
        (tmp_path / folder).mkdir()
    for name in ("Readme", "7", "8", "sub/a", "sub/b"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "removed", "variant"),
    [
        (b"", [b"Readme"], "Readme"),
        (b"", [b"7", b"8", b"Dir"], "Dir"),  # a name without letters proves nothing
        (b"", [b"gone", b"Dir"], "Dir"),
        (b"sub", [b"Readme", b"sub/b"], "sub/b"),
    ],
)
def test_a_deletion_in_a_directory_that_folds_case_is_refused(
    dest: Path, folder: bytes, removed: list[bytes], variant: str
) -> None:
    with FoldingView(dest, folder) as tree, pytest.raises(DestinationError) as refused:
        check_removals(tree, paths(*removed))
    assert f"deleting {variant} might" in refused.value.message


def test_no_other_deletion_is(dest: Path) -> None:
    (dest / "rEADME").hardlink_to(dest / "Readme")
    with FoldingView(dest, b"sub") as tree:
        check_removals(tree, paths(b"Readme", b"7", b"gone", b"Dir", b"none/a", b"Readme/a"))


def test_one_name_of_a_directory_is_looked_at(dest: Path) -> None:
    with FoldingView(dest) as tree:
        check_removals(tree, paths(b"sub/b", b"sub/a", b"Readme", b"Dir"))
        assert tree.looks == 4


def test_what_cannot_be_looked_at_is_passed_over(dest: Path) -> None:
    class Unreadable(FoldingView):
        def stat(self, path: RelPath) -> os.stat_result | None:
            raise PathError(path, "Permission denied")

    with Unreadable(dest) as tree:
        check_removals(tree, paths(b"Readme"))


def test_dest_is_probed_once_for_each_device(dest: Path) -> None:
    probes = dest / ".~tmp~" / "huai-probe"
    probes.mkdir(parents=True, mode=0o700)
    (dest / ".~tmp~").chmod(0o700)
    os.utime(dest, ns=(1, 2))
    handle = os.open(dest, DIRECTORY)
    try:
        device = check_new_device(handle, dest, 0)
        assert device == dest.stat().st_dev
        assert not probes.parent.exists()
        assert dest.stat().st_mtime_ns == 2
        probes.mkdir(parents=True, mode=0o700)
        (dest / ".~tmp~").chmod(0o700)
        (probes / "case").symlink_to("Case")  # one name leads to the other's file
        assert check_new_device(handle, dest, device) == device
        with pytest.raises(DestinationError, match="upper and lower case"):
            check_new_device(handle, dest, device + 1)
        assert not probes.parent.exists()
    finally:
        os.close(handle)
