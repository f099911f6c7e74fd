"""Each operation of `SingleTree` on real file systems."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.table import CandidateTable
from huai_client.tree import STAGING, DestinationError, NotOursError, PathError, Places, View
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import ROOT
from tests.support.comparing import verify
from tests.support.local_trees import (
    T0,
    Staged,
    at,
    content,
    directory,
    file,
    fingerprint,
    linked,
    symlink,
)
from tests.support.single_tree import SingleTree
from tests.support.unprivileged import run_unprivileged


@pytest.fixture
def tree(short_path: Path) -> Iterator[SingleTree]:
    with SingleTree(short_path) as opened:
        yield opened


def publish(tree: SingleTree, expected: File) -> None:
    tree.publish(Staged(tree.dest)([expected]), expected)


def folder(tree: SingleTree, path: bytes) -> os.stat_result:
    status = tree.stat(at(path))
    assert status is not None
    return status


# DEST itself


def test_a_missing_dest_is_not_created(short_path: Path) -> None:
    with pytest.raises(DestinationError, match="does not exist") as caught:
        SingleTree(short_path / "no")
    assert "mkdir" in caught.value.hint
    assert not (short_path / "no").exists()


def test_dest_has_to_be_a_directory(short_path: Path) -> None:
    (short_path / "f").touch()
    with pytest.raises(DestinationError, match="not a directory"):
        SingleTree(short_path / "f")


def test_dest_as_a_symlink_names_the_real_path(short_path: Path) -> None:
    (short_path / "real").mkdir()
    (short_path / "ln").symlink_to("real")
    with pytest.raises(DestinationError, match="symlink") as caught:
        SingleTree(short_path / "ln")
    assert str(short_path / "real") in caught.value.hint


def steps_in_a_dest_of_root(folder: Path) -> None:
    roots = folder / "roots"
    if roots.stat().st_uid:  # an ordinary user runs the tests, and can make none
        roots = Path("/usr")
    with pytest.raises(DestinationError, match="belongs to root"):
        SingleTree(roots)
    with View(roots) as view:
        assert view.stat(ROOT) is not None


def test_a_dest_of_another_user_can_be_read_but_not_changed(short_path: Path) -> None:
    (short_path / "roots").mkdir()
    run_unprivileged(steps_in_a_dest_of_root, short_path)


# Publishing


def test_publish_sets_everything(tree: SingleTree) -> None:
    expected = file(b"f", 100, mode=0o6751)._replace(mtime=-1_500_000_000, owner=b"#4321")
    publish(tree, expected)
    status = folder(tree, b"f")
    assert stat.S_IMODE(status.st_mode) == 0o6751
    assert status.st_mtime_ns == -1_500_000_000
    assert status.st_uid == (4321 if os.geteuid() == 0 else os.geteuid())
    assert (tree.dest / "f").read_bytes() == content(b"f", 100)


def lying(tree: SingleTree, name: bytes) -> Places:
    """At the top of the tree."""
    return Places(_native.Arrived(), tree.handle, tree.handle, {0: name})


def test_a_staged_symlink_is_refused(tree: SingleTree) -> None:
    (tree.dest / "staged").symlink_to("/etc/passwd")
    with pytest.raises(PathError, match="not a regular file"):
        tree.publish(lying(tree, b"staged"), file(b"f"))


@pytest.mark.parametrize("mode", [0, 0o1644, 0o2755, 0o4755, 0o7777, 0o444])
def test_every_bit_of_the_mode(tree: SingleTree, mode: int) -> None:
    publish(tree, file(b"f", mode=mode))
    tree.make_directory(at(b"d"))
    tree.set_directory(directory(b"d", mode=mode))
    assert stat.S_IMODE(folder(tree, b"f").st_mode) == mode
    assert stat.S_IMODE(folder(tree, b"d").st_mode) == mode


def test_setuid_survives_a_change_of_owner(tree: SingleTree) -> None:
    publish(tree, file(b"f", mode=0o4755))
    tree.set_attributes(file(b"f", mode=0o4755)._replace(owner=b"#77", group=b"#78"))
    status = folder(tree, b"f")
    assert stat.S_IMODE(status.st_mode) == 0o4755
    if os.geteuid() == 0:
        assert (status.st_uid, status.st_gid) == (77, 78)


def test_a_name_is_looked_up_as_what_it_is_wanted_for(tree: SingleTree) -> None:
    (tree.dest / "f").touch()
    table = CandidateTable(tree.names)
    table.add([(at(b"f"), file(b"f")._replace(group=b"no-such-group"), ())])
    tree.survey(table.engine)
    if tree.owners is not None:
        assert tree.owners.unknown == {b"no-such-group"}


def test_a_new_directory_does_not_inherit_setgid(tree: SingleTree) -> None:
    tree.make_directory(at(b"d"))
    tree.set_directory(directory(b"d", mode=0o2755))
    tree.make_directory(at(b"d/e"), directory(b"d/e"))
    tree.set_directory(directory(b"d/e"))
    assert stat.S_IMODE(folder(tree, b"d/e").st_mode) == 0o755


# Symlinks, hardlinks, attributes


def test_a_temporary_left_behind_is_replaced(tree: SingleTree) -> None:
    tree.symlink(symlink(b"a"))
    (tree.dest / ".~tmp~" / "huai" / "making").touch()
    tree.symlink(symlink(b"b"))
    assert tree.target(at(b"b")) == b"nowhere"
    assert tree.listing(STAGING) == ([], [])


def test_link_to_a_symlink_or_to_nothing_is_refused(tree: SingleTree) -> None:
    (tree.dest / "l").symlink_to("/etc/passwd")
    for leader, reason in ((b"l", "is not what it should be"), (b"none", "is missing")):
        with pytest.raises(PathError, match=f"the file to link to {reason}"):
            tree.link(linked(b"x", file(leader)))
    assert tree.stat(at(b"x")) is None


@pytest.mark.parametrize(
    "changed",
    [{"size": 11}, {"mtime": T0 + 1}, {"mode": 0o600}, {"owner": b"#77"}, {"group": b"#78"}],
)
def test_a_hardlink_is_made_of_nothing_but_what_the_metadata_state(
    tree: SingleTree, changed: dict[str, object]
) -> None:
    if os.geteuid() != 0 and not changed.keys().isdisjoint({"owner", "group"}):
        changed = {"size": 11}  # owners are root's business
    stated = file(b"secret")
    publish(tree, stated)
    publish(tree, file(b"taken", 20))
    for path in (b"new", b"taken"):
        expected = linked(path, stated)._replace(**changed)  # type: ignore[arg-type]
        with pytest.raises(PathError, match="not what it should be"):
            tree.link(expected)
    assert tree.stat(at(b"new")) is None
    assert folder(tree, b"taken").st_size == 20
    assert folder(tree, b"secret").st_nlink == 1
    assert tree.listing(STAGING)[0] == []


RESERVED_PATHS = [b".~tmp~", b".~tmp~/huai/ready", b"d/.~TMP~", b".~Tmp~/huai-trash/1-x/f"]


def test_no_path_leads_into_the_staging_area(tree: SingleTree) -> None:
    publish(tree, file(b"f"))
    for path in RESERVED_PATHS:
        place = tree.dest / os.fsdecode(path)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = fingerprint(place)
        for expected in (linked(b"g", file(path)), linked(path, file(b"f"))):
            with pytest.raises(PathError, match="reserved"):
                tree.link(expected)
        assert fingerprint(place) == before


def test_nothing_is_made_in_a_staging_area_that_others_may_write_to(tree: SingleTree) -> None:
    (tree.dest / ".~tmp~/huai").mkdir(parents=True)
    (tree.dest / ".~tmp~").chmod(0o777)
    with pytest.raises(NotOursError, match="other users can write to"):
        tree.symlink(symlink(b"l"))
    assert tree.stat(at(b"l")) is None


def test_what_was_staged_is_published_although_its_folder_was_exchanged(tree: SingleTree) -> None:
    expected = file(b"f")
    staged = Staged(tree.dest)([expected])
    tree.set_metadata(staged, expected)
    (tree.dest / ".~tmp~").rename(tree.dest / "aside")
    planted = tree.dest / ".~tmp~/huai/ready" / os.fsdecode(staged.names[0])
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"not looked at")
    tree.rename_into_place(staged, expected)
    assert (tree.dest / "f").read_bytes() == content(b"f", 10)


def test_attributes_of_a_symlink_leave_its_target_alone(tree: SingleTree) -> None:
    publish(tree, file(b"f"))
    tree.symlink(symlink(b"l", b"f", mtime=5))
    before = folder(tree, b"f")
    tree.set_attributes(symlink(b"l", b"f", mtime=7_000_000_001)._replace(owner=b"#99"))
    assert folder(tree, b"l").st_mtime_ns == 7_000_000_001
    assert folder(tree, b"f") == before


def test_equal_attributes_are_not_written_again(tree: SingleTree) -> None:
    publish(tree, file(b"f"))
    before = folder(tree, b"f").st_ctime_ns
    tree.set_attributes(file(b"f"))
    assert folder(tree, b"f").st_ctime_ns == before


# Removing and moving


@pytest.mark.parametrize("mtime", [-(1 << 40), 1 << 62, (1 << 63) - 1])
def test_no_time_is_clamped_without_a_word(tree: SingleTree, mtime: int) -> None:
    """Cover a file system that stores less, which `verify` reports."""
    tree.make_directory(at(b"d"))
    tree.set_directory(directory(b"d", mtime=mtime))
    os.utime(tree.dest, ns=(mtime, mtime))
    assert folder(tree, b"d").st_mtime_ns == tree.dest.stat().st_mtime_ns
    differences = verify(
        tree, [directory(b"", mtime=mtime), directory(b"d", mtime=mtime)], content=False
    )
    reported = {each.path for each in differences if "mtime" in each.attributes}
    assert (b"d" in reported) == (folder(tree, b"d").st_mtime_ns != mtime)
