"""A tree whose operations are done one by one, as rows of one: what fails is raised."""

from huai_client.diff.candidate import Remove
from huai_client.tree import Places, RowResult, Tree
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath


class SingleTree(Tree):
    """`Tree`, and a method for each single operation."""

    def make_directory(self, path: RelPath, like: Directory | None = None) -> None:
        _done(self.make_directories([like._replace(path=path) if like else path]))

    def set_directory(self, directory: Directory) -> None:
        _done(self.settle_directories([directory]))

    def move(self, old: RelPath, new: RelPath, forward: Symlink | None = None) -> None:
        _done(self.move_directories([(old, new)], [forward] if forward else []))

    def set_metadata(self, staged: Places, file: File) -> None:
        _done(self.prepare_files([file], staged))

    def rename_into_place(self, staged: Places, file: File) -> None:
        _done(self.publish_files([file], staged))

    def publish(self, staged: Places, file: File) -> None:
        self.set_metadata(staged, file)
        self.rename_into_place(staged, file)

    def link(self, file: File) -> None:
        _done(self.make_links([file]))

    def symlink(self, symlink: Symlink) -> None:
        _done(self.make_symlinks([symlink]))

    def set_attributes(self, leaf: File | Symlink) -> None:
        _done(self.settle_leaves([leaf]))

    def remove(self, path: RelPath) -> None:
        _done(self.remove_entries([Remove(path, directory=False)]))


def _done(row: RowResult) -> None:
    if row.failure is not None:
        assert row.done == 0
        raise row.failure
    assert row.done == 1
