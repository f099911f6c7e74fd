"""The native maker: the entries it makes from lines, its errors, and its confinement."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory
from huai_schema.paths import RelPath
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.kind import SparseKind
from huai_server.fallback.sparse.maker import Maker, delete_tree
from tests.support.old_kernels import OPENAT2, without_call
from tests.support.schema.lines import encode_leaf
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import directory, file, snapshot, tree_of
from tests.support.unprivileged import as_nobody

Fill = Callable[[Maker], None]


def apply(root: Path, fill: Fill, building: Path | None = None) -> None:
    with Maker(root, None, building) as maker:
        fill(maker)


def leaves(lines: bytes, path: bytes = b"") -> Fill:
    return lambda maker: maker.make_leaves(Listing(RelPath(path), b"0", lines))


@pytest.mark.parametrize(
    "line", [b"../outside\t1\t0\n", b"a\\x2fb\t1\t0\n", b"a\t1\t0\thd/./file\n", b"a\t1\t0", b"a"]
)
def test_lines_without_sense_are_refused(tmp_path: Path, line: bytes) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(OSError, match=os.strerror(errno.EBADMSG)):
        apply(root, leaves(b"A\t5\t7\n" + line))
    assert os.listdir(root) == ["A"]
    assert os.listdir(tmp_path) == ["root"]


def _link_by_a_way_out(maker: Maker) -> None:
    maker.make_leaf(file(b"new", link=b"d/../../outside/file"))


def _link_by_a_way_round(maker: Maker) -> None:
    maker.make_leaf(file(b"new", link=b"d/./file"))


@pytest.mark.parametrize("old_kernel", [False, True])
@pytest.mark.parametrize("fill", [_link_by_a_way_out, _link_by_a_way_round])
def test_no_path_leads_out_whatever_the_kernel(
    tmp_path: Path, fill: Fill, old_kernel: bool
) -> None:
    for folder in ("root", "root/d", "outside"):
        (tmp_path / folder).mkdir()
    for name in ("root/d/file", "outside/file"):
        (tmp_path / name).touch()

    def work() -> str:
        try:
            apply(tmp_path / "root", fill)
        except OSError as error:
            return os.strerror(error.errno or 0)
        return "nothing was refused"

    reason = without_call(OPENAT2, work) if old_kernel else work()
    assert reason == os.strerror(errno.EXDEV)
    assert os.listdir(tmp_path / "root") == ["d"]


def test_fields_of_later_versions_are_passed_over(tmp_path: Path) -> None:
    apply(tmp_path, leaves(b"a\t1\t2.5\tm600\tz\tyes\nb\t>a\t0\tq1\n"))
    assert (tmp_path / "a").stat().st_mtime_ns == 2_500_000_000
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / "b").readlink() == Path("a")


def test_owners_as_lines_spell_them(tmp_path: Path) -> None:
    owners = OwnerIds()
    entries = [
        file(b"d/a", owner=b"#7", group=b"#8"),
        file(b"d/b", owner=b"no\tbody knows", group=b"#9"),
        file(b"d/c"),
    ]
    if os.geteuid() != 0:
        entries = entries[2:]
    tree = tree_of(directory(b"d"), *entries)
    unowned = 0 if os.geteuid() == 0 else len(tree)
    assert SparseKind(tmp_path).make(tmp_path / "g", snapshot(tree), owners) == unowned
    statuses = [os.stat(tmp_path / "g/d" / name) for name in sorted(os.listdir(tmp_path / "g/d"))]
    if os.geteuid() == 0:
        assert [(each.st_uid, each.st_gid) for each in statuses] == [(7, 8), (0, 9), (0, 0)]
        assert owners.unknown == {r"user 'no\tbody knows'"}


def test_an_owner_that_cannot_be_set_counts_once(short_path: Path) -> None:
    objects = MemoryObjects()
    before = snapshot(tree_of(), objects)
    after = snapshot(tree_of(directory(b"d"), file(b"d/f")), objects)
    short_path.chmod(0o777)

    def work() -> int:
        kind = SparseKind(short_path)
        kind.make(short_path / "g", before, OwnerIds())
        return kind.plan(short_path / "g", before, after, OwnerIds()).run()

    assert as_nobody(work) == 2


def test_a_failure_names_its_path(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/there").touch()
    lines = b"".join(encode_leaf(file(b"d/" + name, 1)) for name in (b"a", b"there", b"z"))
    with pytest.raises(FileExistsError) as caught:
        apply(tmp_path, leaves(lines, b"d"))
    assert caught.value.filename == str(tmp_path / "d/there")
    assert not (tmp_path / "d/z").exists()
    with pytest.raises(FileNotFoundError) as missing:
        apply(tmp_path, leaves(b"", b"not/there"))
    assert missing.value.filename == str(tmp_path / "not/there")


def _enter(maker: Maker) -> None:
    maker.make_leaf(file(b"way/in/new"))


def _enter_the_last(maker: Maker) -> None:
    maker.make_leaf(file(b"way/new"))


def _attributes(maker: Maker) -> None:
    maker.set_attributes(Directory(RelPath(b"way"), 5, 0o711))


def _link(maker: Maker) -> None:
    maker.make_leaf(file(b"new", link=RelPath(b"way/precious")))


def _link_to_a_symlink(maker: Maker) -> None:
    maker.make_leaf(file(b"new", link=RelPath(b"way")))


def _move(maker: Maker) -> None:
    maker.move(RelPath(b"way/in"), RelPath(b"new"))


def _move_there(maker: Maker) -> None:
    maker.move(RelPath(b"folder"), RelPath(b"way/new"))


def changes_of(folder: Path) -> tuple[list[str], int, int]:
    """Return what changes with a directory, except its time of access."""
    status = folder.stat()
    return os.listdir(folder), status.st_mtime_ns, status.st_ctime_ns


@pytest.mark.parametrize(
    "fill",
    [_enter, _enter_the_last, _attributes, _link, _link_to_a_symlink, _move, _move_there],
)
def test_no_symlink_leads_out(tmp_path: Path, fill: Fill) -> None:
    root, building, outside = (tmp_path / name for name in ("root", "building", "outside"))
    for folder in (root, building, outside, outside / "in", root / "folder"):
        folder.mkdir()
    (outside / "precious").touch()
    (root / "way").symlink_to(outside)
    before = changes_of(outside)
    with pytest.raises(OSError, match=r"level|Not a directory|Invalid|Too many"):
        apply(root, fill, building)
    assert changes_of(outside) == before
    assert sorted(os.listdir(root)) == ["folder", "way"]


def test_what_does_not_fit_is_an_error(tmp_path: Path) -> None:
    """ext4 and others silently clamp times; a tmpfs holds this one."""
    lines = b"a\t1\t-9000000000\n"
    try:
        apply(tmp_path, leaves(lines))
    except OSError as error:
        assert error.errno == errno.EOVERFLOW  # noqa: PT017 (either is right, nothing else is)
    else:
        assert (tmp_path / "a").stat().st_mtime_ns == -9_000_000_000 * 10**9


def test_a_deep_tree_and_a_crowded_one(short_path: Path) -> None:
    names = [b"/".join([b"d" * 200] * depth) for depth in range(1, 20)]
    deep = tree_of(*map(directory, names), file(names[-1] + b"/" + b"f" * 255, 5 << 40, -3))
    crowded = [file(b"n%05d" % number, number, number) for number in range(50_000)]
    tree = deep | tree_of(*crowded)
    unowned = 0 if os.geteuid() == 0 else len(tree)
    assert SparseKind(short_path).make(short_path / "g", snapshot(tree), OwnerIds()) == unowned
    assert len(os.listdir(short_path / "g")) == 50_001
    status = os.stat(short_path / "g/n49999")
    assert (status.st_size, status.st_mtime_ns, status.st_blocks) == (49_999, 49_999, 0)
    handle = os.open(short_path / "g", os.O_RDONLY)
    try:
        status = os.stat(names[-1] + b"/" + b"f" * 255, dir_fd=handle)
    finally:
        os.close(handle)
    assert (status.st_size, status.st_mtime_ns) == (5 << 40, -3)


def test_a_tree_whose_modes_deny_its_owner_is_deleted(short_path: Path) -> None:
    short_path.chmod(0o777)
    top = short_path / "top"

    def work() -> list[str]:
        for mode, name in ((0o000, "closed"), (0o400, "unchangeable"), (0o300, "unreadable")):
            (top / name / "below").mkdir(parents=True)
            (top / name / "file").touch()
            (top / name).chmod(mode)
        top.chmod(0o500)
        delete_tree(top)
        return os.listdir(short_path)

    assert as_nobody(work) == []
