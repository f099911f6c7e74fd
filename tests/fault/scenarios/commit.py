"""A commit: of a new tree, of a changed one, of a large directory, and from a list of changes."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from huai_schema.errors import HuaiError
from huai_server.commit.later import digest_tree
from huai_server.commit.read_limits import ReadLimits
from tests.fault.killing import Ground, Hit, undone
from tests.support.committing import NAME, Upstream, fsck


@dataclass
class Committing:
    """A tree with something to commit."""

    upstream: Upstream
    calls_at_the_end: int = 10
    """Calls of a commit that follow the move of the branch, at most."""

    def __post_init__(self) -> None:
        self.folders = [self.upstream.root]
        self.before = self.head
        with undone(self.upstream.root):
            assert self.upstream.commit().changed
            self.tree = self.upstream.entries_id

    @property
    def head(self) -> str | None:
        """The newest commit, as git sees it."""
        if not self.upstream.places.repository.exists():
            return None
        head = self.upstream.repository.head()
        return head.commit if head else None


def _files(ground: Ground) -> Upstream:
    upstream = Upstream(ground.folder)
    for number in range(30):
        upstream.write(f"d{number % 3}/f{number}", "x" * number)
    return upstream


def first(ground: Ground) -> Committing:
    return Committing(_files(ground))


def second(ground: Ground) -> Committing:
    upstream = _files(ground)
    upstream.commit()
    upstream.write("d1/new", "new")
    (upstream.tree / "d2").rename(upstream.tree / "moved")
    return Committing(upstream)


def large_directory(ground: Ground) -> Committing:
    """One that is written in parts, so that the pack holds some of it already."""
    upstream = Upstream(ground.folder)
    upstream.configure(digest="off")
    for number in range(12_000):
        upstream.write(f"large/{number:05}-{'x' * 200}")
    return Committing(upstream)


def run(scene: Committing) -> str:
    """Commit; what came of it, in a word."""
    try:
        result = scene.upstream.commit()
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    if result.problems:
        return f"{int(result.exit_code)} {result.problems}"
    return "changed" if result.changed else "unchanged"


def is_old_or_new(scene: Committing, hit: Hit, *further_codes: str) -> str:
    """The branch names a sound commit, and moves near the end; an error is a clear one."""
    assert hit.killed or hit.word in ("changed", "11", "41", "50", *further_codes)
    upstream, head = scene.upstream, scene.head
    if head is None:
        return "old"
    assert upstream.check().faults == ()
    fsck(upstream.places.repository)
    if head == scene.before:
        return "old"
    # Some of the tree could not be read with 41.
    assert hit.word == "41" or upstream.entries_id == scene.tree
    assert not hit.killed or hit.point > hit.total - scene.calls_at_the_end
    return "new"


def parts_are_written(scene: Committing, hit: Hit) -> str:
    is_old_or_new(scene, hit)
    left = scene.upstream.places.repository.glob("objects/pack/tmp_*")
    return "in parts" if any(path.stat().st_size > 10_000 for path in left) else ""


def is_finished(scene: Committing, hit: Hit) -> None:
    """The next commit is of the whole tree, and leaves no temporary file."""
    upstream, head = scene.upstream, scene.head
    result = upstream.commit()
    assert hit.word == "41" or result.changed == (head == scene.before)
    assert (upstream.entries_id, result.problems) == (scene.tree, ())
    assert not [*upstream.root.rglob("tmp_*")]
    packs = list(upstream.repository.pack_folder.iterdir())
    assert {path.suffix for path in packs} == {".pack", ".idx"}
    assert len(packs) % 2 == 0


# From a list of changes.

CHANGED = ("d0/f0", "d1/l0", "d0/new", "d2/new", "d1/f1", "d0/f3", "moved/**", "renamed")
"""The names of a correct list: rsync names an old name with each new one."""
NO_RECORD = "the record of the last commit is missing"


@dataclass
class Listing:
    """A tree with hardlinks across directories that changed, and the way of the next commit."""

    upstream: Upstream
    commit: Callable[[Upstream], bool]

    def __post_init__(self) -> None:
        self.folders = [self.upstream.root, self.upstream.tree]


def commit_listed(upstream: Upstream) -> bool:
    return upstream.commit_listed(*CHANGED).changed


def commit_whole(upstream: Upstream) -> bool:
    return upstream.commit().changed


def add_digests(upstream: Upstream) -> bool:
    return digest_tree(NAME, upstream.module, upstream.places, ReadLimits()).changed


def link(upstream: Upstream, old: str, new: str) -> None:
    os.link(upstream.tree / old, upstream.tree / new)


def linked_files(folder: Ground) -> Upstream:
    """Groups of hardlinks across directories, and files."""
    upstream = Upstream(folder.folder)
    for number in range(9):
        upstream.write(f"d{number % 3}/f{number}", "x" * number)
    for number in range(4):
        upstream.write(f"renamed/r{number}", "r" * number)
    for old, new in (("d0/f0", "d1/l0"), ("d0/f0", "d2/l0"), ("d1/f1", "d2/l1")):
        link(upstream, old, new)
    return upstream


def _listing(commit: Callable[[Upstream], bool], ground: Ground) -> Listing:
    """A group gets another leader, a new one comes, one changes; a directory is renamed."""
    upstream = linked_files(ground)
    if commit is add_digests:
        upstream.configure(digest="later")
    upstream.commit()
    (upstream.tree / "d0/f0").unlink()
    link(upstream, "d0/f3", "d0/new")
    link(upstream, "d0/f3", "d2/new")
    upstream.write("d1/f1", "changed")
    (upstream.tree / "renamed").rename(upstream.tree / "moved")
    return Listing(upstream, commit)


listed = partial(_listing, commit_listed)
not_listed = partial(_listing, commit_whole)
digests_later = partial(_listing, add_digests)


def run_listing(scene: Listing) -> bool:
    return scene.commit(scene.upstream)


def list_is_enough(upstream: Upstream, *paths: str) -> str:
    """Check that these paths give what a whole scan sees; why that was made, if it was."""
    result = upstream.commit_listed(*paths)
    assert result.problems == ()
    assert upstream.audit().counts.total == 0
    assert result.listed is not None
    return result.listed.scan_cause


def list_commits_all(scene: Listing, _: Hit) -> str:
    return list_is_enough(scene.upstream, *CHANGED)


def later_lists_are_enough(scene: Listing, hit: Hit) -> None:
    """The record of hardlinks is whole: a leader changes, and the list names nothing else."""
    upstream = scene.upstream
    upstream.write("d1/l0", f"changed {hit.point}")
    assert list_is_enough(upstream, "d1/l0") == ""
    add_digests(upstream)  # where they come later, a whole scan commits those that are known
    result = upstream.commit()
    assert (result.changed, result.problems) == (False, ())
    upstream.prove_sound()
    assert not [*upstream.root.rglob("tmp_*")]
