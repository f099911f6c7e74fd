"""Journals of files that are changed in place: applied if they fit, else dropped."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from huai_client.staging import Journals, finish_patches
from huai_client.staging.journals import Journal, PatchState, hashed
from huai_schema.paths import RelPath

PATH = RelPath(b"images/disk.img")
OLD, NEW = b"old" * 1000, b"old" * 500 + b"new" * 300
DAMAGED = "a file whose journal is damaged"
RANGES = [(1500, len(NEW))]


class Place:
    """A tree, and outside of it the journals and a victim."""

    def __init__(self, top: Path) -> None:
        self.dest, self.folder, self.victim = top / "dest", top / "journals", top / "victim"
        self.target = self.dest / os.fsdecode(PATH)
        self.target.parent.mkdir(parents=True)
        self.target.write_bytes(OLD)
        self.victim.write_bytes(OLD)
        self.journals = Journals(self.folder, self.dest)
        self.folder.mkdir()
        self.patch = self.stage(PATH)

    def stage(self, path: bytes) -> Path:
        patch = self.dest / ".~tmp~/huai/patches" / os.fsdecode(hashed(path))
        patch.parent.mkdir(parents=True, exist_ok=True)
        patch.write_bytes(bytes(1500) + NEW[1500:])
        return patch

    def journal(self, path: bytes = PATH) -> Journal:
        state = PatchState.of(self.stage(path).stat())
        target = (self.dest / os.fsdecode(path)).stat()
        dest = os.fsencode(self.dest)
        return Journal(dest, path, target.st_ino, target.st_size, state, RANGES)

    @property
    def written(self) -> Path:
        return self.folder / os.fsdecode(hashed(PATH))


@pytest.fixture(name="place")
def tree_and_victim(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_journal_that_fits_is_followed(place: Place) -> None:
    place.journals.write(place.journal())
    assert finish_patches(place.journals) == []
    assert place.target.read_bytes() == NEW
    assert not any(place.folder.iterdir())


@pytest.mark.parametrize(
    "path", [b"../victim", b"/victim", b"images/../../victim", b"", b".~tmp~/huai/lock", b"a\0b"]
)
def test_a_path_that_no_entry_can_have_is_not_followed(place: Place, path: bytes) -> None:
    journal = msgspec.structs.replace(place.journal(), path=path, inode=place.victim.stat().st_ino)
    place.journals.write(journal)
    assert finish_patches(place.journals) == [DAMAGED]
    assert place.victim.read_bytes() == OLD
    assert not any(place.folder.iterdir())


def shorten(place: Place) -> None:
    os.truncate(place.patch, 10)


def rewrite(place: Place) -> None:
    place.patch.write_bytes(b"x" * len(NEW))


def link(place: Place) -> None:
    (place.dest.parent / "outside").hardlink_to(place.target)


def replace(place: Place) -> None:
    place.target.rename(place.dest / "kept")  # so that its inode number is not reused
    place.target.write_bytes(OLD)


def follow(place: Place) -> None:
    place.target.unlink()
    place.target.symlink_to(place.victim)


def lead_out(place: Place) -> None:
    place.target.parent.rename(place.dest.parent / "images")
    place.target.parent.symlink_to(place.dest.parent / "images")


def put_fifo(place: Place) -> None:
    place.patch.unlink()
    os.mkfifo(place.patch)


def grow(place: Place) -> None:
    os.truncate(place.target, 2 * len(OLD))


def lose(place: Place) -> None:
    place.patch.unlink()


@pytest.mark.parametrize(
    "change", [shorten, rewrite, link, replace, follow, lead_out, put_fifo, grow, lose]
)
def test_what_does_not_fit_is_dropped(place: Place, change: Callable[[Place], None]) -> None:
    place.journals.write(place.journal())
    change(place)
    before = os.path.realpath(place.target), place.target.read_bytes()
    assert finish_patches(place.journals) == [os.fsdecode(PATH)]
    assert (os.path.realpath(place.target), place.target.read_bytes()) == before
    assert place.victim.read_bytes() == OLD
    assert not any(place.folder.iterdir())


def test_a_damaged_journal_is_dropped(place: Place) -> None:
    place.journals.write(place.journal())
    written = place.written.read_bytes()
    for damaged in (b"", written[:-1], written[:16], written[16:], written[:-1] + b"\xff"):
        place.written.write_bytes(damaged)
        assert finish_patches(place.journals) == [DAMAGED]
        assert not any(place.folder.iterdir())
    os.mkfifo(place.written)
    assert finish_patches(place.journals) == [DAMAGED]
    assert place.target.read_bytes() == OLD


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"ranges": [(-1, 5)]},
        {"ranges": [(5, 5)]},
        {"ranges": [(5, 9), (7, 11)]},
        {"ranges": [(0, len(NEW) + 1)]},
        {"dest": b"/elsewhere"},
    ],
)
def test_values_that_no_version_writes_are_dropped(
    place: Place, changes: dict[str, object]
) -> None:
    place.journals.write(msgspec.structs.replace(place.journal(), **changes))
    assert finish_patches(place.journals) == [DAMAGED]
    assert place.target.read_bytes() == OLD
    assert not any(place.folder.iterdir())
