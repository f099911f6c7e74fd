"""The digests that are kept: right, private, and not used where they are damaged."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from huai_native._native import Digests
from huai_server.scan.types import IDENTITY

DIGEST = b"\1" * 32
OTHER = b"\2" * 32
BIRTH = 11
BLOCK_BYTES = 4096 * 112
"""Of a full block of the file."""


class Seen(NamedTuple):
    """A file as a scan saw it."""

    device: int = 1
    inode: int = 2
    size: int = 3
    mtime: int = 4
    ctime: int = 5
    links: int = 1
    mode: int = 0o644
    user: int = 0
    group: int = 0
    folder: int = 7
    name: bytes = b"name"
    file_system: int = 0
    directory_device: int = 0
    """The device of its directory; 0: the same as its own."""

    @property
    def arguments(self) -> tuple[bytes, bytes, int, int, int]:
        """Of a directory that holds this one file, behind a symlink's line."""
        before = b"link\t>target\t1\n"
        identity = self[:5]
        owners = self.mode, self.user, self.group
        record = IDENTITY.pack(*identity, self.links, len(before), *owners)
        device = self.directory_device or self.device
        return before + self.name + b"\t3\t4\n", record, self.folder, device, self.file_system


Answer: TypeAlias = bytes | tuple[int, bytes] | None
"""The digest, or what it is if the file has this time of birth."""
ONE = Seen()


def ask(folder: Path, *files: Seen, digest: bytes | None = None) -> list[Answer]:
    """What is known of files; with `digest` all of them are kept, as a whole commit does."""
    digests = Digests(bytes(folder))
    doubts = digests.look_up([file.arguments for file in files])
    conditions = {place: known for place, number, known in doubts if number == 0}
    found = [(BIRTH, digest) if digest else None] * len(doubts)
    columns = digests.settle(found)
    if digest:
        digests.finish()
    return [conditions.get(place, column) for place, column in enumerate(columns)]


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    assert ask(tmp_path, ONE) == [None]
    assert list(tmp_path.iterdir()) == []


def test_what_was_kept_is_known(tmp_path: Path) -> None:
    assert ask(tmp_path, ONE, digest=DIGEST) == [None]
    assert ask(tmp_path, ONE) == [DIGEST]


@pytest.mark.parametrize("field", ["links", "mode", "user", "group", "folder", "name"])
def test_an_attribute_that_changed_explains_a_new_ctime_and_nothing_else(
    tmp_path: Path, field: str
) -> None:
    ask(tmp_path, ONE, digest=DIGEST)
    values: dict[str, Any] = {field: b"other" if field == "name" else 99}
    other = ONE._replace(**values)
    assert ask(tmp_path, other._replace(ctime=6)) == [(BIRTH, DIGEST)]
    assert ask(tmp_path, other) == [DIGEST], "another name of the same file"
    others: list[dict[str, Any]] = [{"size": 6}, {"mtime": 6}, {"inode": 6}, {"device": 6}]
    for wrong in others:
        assert ask(tmp_path, other._replace(**wrong)) == [None]
        assert ask(tmp_path, other._replace(ctime=6, **wrong)) == [None]


MOUNTED = ONE._replace(file_system=(1 << 63) + 5)


def test_a_file_system_that_is_mounted_again_is_the_same(tmp_path: Path) -> None:
    """It has another device number then."""
    ask(tmp_path, MOUNTED, digest=DIGEST)
    before = (tmp_path / "digests").stat()
    again = MOUNTED._replace(device=6)
    assert ask(tmp_path, again, digest=OTHER) == [DIGEST]
    assert (tmp_path / "digests").stat() == before, "the table is as it would be written"
    assert ask(tmp_path, again._replace(mode=0o600, ctime=6)) == [(BIRTH, DIGEST)]


def test_another_file_system_with_the_same_device_number_is_another(tmp_path: Path) -> None:
    ask(tmp_path, MOUNTED, digest=DIGEST)
    for other in (MOUNTED.file_system + 1, 0):
        assert ask(tmp_path, MOUNTED._replace(file_system=other)) == [None]


def test_a_file_on_another_device_than_its_directory_keeps_its_device_number(
    tmp_path: Path,
) -> None:
    """As in an overlay of several file systems."""
    lower = MOUNTED._replace(directory_device=9)
    ask(tmp_path, lower, digest=DIGEST)
    assert ask(tmp_path, lower._replace(file_system=0)) == [DIGEST]
    assert ask(tmp_path, lower._replace(device=6)) == [None]


EARLIER = bytes.fromhex(
    "68756169206469676573747320310a0002000000ca1e6e0c28000000000000000200000000000000030000000000"
    "0000040000000000000005000000000000000100"
    "0000a401000000000000000000000700000000000000067e235e000000000b00000000000000"
    "0101010101010101010101010101010101010101010101010101010101010101"
    "2800000000000000030000000000000003000000000000000400000000000000050000000000000002000000a401"
    "000000000000000000000700000000000000067e235e000000000b00000000000000"
    "0101010101010101010101010101010101010101010101010101010101010101"
)
"""A table of a version that kept device numbers: of device 40, inodes 2 and 3 (with two names)."""


def earlier_files() -> list[Seen]:
    files = [Seen(device=40, inode=2), Seen(device=40, inode=3, links=2)]
    return [file._replace(file_system=MOUNTED.file_system) for file in files]


@pytest.mark.parametrize("name", ["digests", "digests.left", "digests.new"])
def test_a_table_of_an_earlier_version_is_used(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(EARLIER)
    files = earlier_files()
    chmod = [file._replace(mode=0o600, ctime=6) for file in files]
    assert ask(tmp_path, *chmod) == [(BIRTH, DIGEST)] * 2
    assert ask(tmp_path, *files, digest=OTHER) == [DIGEST] * 2
    again = [file._replace(device=6) for file in files]
    assert ask(tmp_path, *again) == [DIGEST] * 2, "it is written with the number that stays"


def test_a_table_of_an_earlier_version_says_nothing_of_another_device(tmp_path: Path) -> None:
    (tmp_path / "digests").write_bytes(EARLIER)
    others = [file._replace(device=41) for file in earlier_files()]
    assert ask(tmp_path, *others) == [None] * 2


def test_a_killed_commit_after_an_update_loses_nothing(tmp_path: Path) -> None:
    """The table of an earlier version is merged with that of this one."""
    (tmp_path / "digests.left").write_bytes(EARLIER)
    new = MOUNTED._replace(inode=99)
    digests = Digests(bytes(tmp_path))
    digests.look_up([new.arguments])
    digests.settle([(BIRTH, OTHER)])
    digests.flush()
    assert ask(tmp_path, *earlier_files(), new) == [DIGEST, DIGEST, OTHER]


@pytest.mark.parametrize("field", ["device", "inode", "size", "mtime", "ctime"])
def test_any_other_identity_is_another_file(tmp_path: Path, field: str) -> None:
    ask(tmp_path, ONE, digest=DIGEST)
    values: dict[str, Any] = {field: 99}
    assert ask(tmp_path, ONE._replace(**values)) == [None]


def test_a_file_without_a_time_of_birth_is_read_again_when_its_ctime_changed(
    tmp_path: Path,
) -> None:
    digests = Digests(bytes(tmp_path))
    digests.look_up([ONE.arguments])
    digests.settle([(None, DIGEST)])
    digests.finish()
    assert ask(tmp_path, ONE) == [DIGEST]
    assert ask(tmp_path, ONE._replace(mode=0o600, ctime=6)) == [None]


def test_of_several_names_the_first_that_is_met_explains_a_new_ctime(tmp_path: Path) -> None:
    """The others may have turned like snapshots, and each have the place of another."""
    first, second = ONE._replace(links=2), ONE._replace(links=2, name=b"other")
    ask(tmp_path, first, second, digest=DIGEST)
    now = [file._replace(ctime=6) for file in (first, second)]
    assert ask(tmp_path, *now) == [None, None], "edited in place"
    assert ask(tmp_path, *reversed(now)) == [(BIRTH, DIGEST), None]


def test_a_later_name_is_never_explained_by_itself(tmp_path: Path) -> None:
    """The first could not be read, because the file changed meanwhile."""
    first, second = ONE._replace(links=2), ONE._replace(links=2, name=b"other")
    ask(tmp_path, first, second, digest=DIGEST)
    digests = Digests(bytes(tmp_path))
    assert len(digests.look_up([first._replace(ctime=6).arguments])) == 1
    digests.settle([None])
    assert digests.look_up([second._replace(ctime=6).arguments]) == [(0, 0, None)]


def test_a_second_name_has_the_digest_that_was_read_for_the_first(tmp_path: Path) -> None:
    first, second = ONE._replace(links=2), ONE._replace(links=2, name=b"other")
    digests = Digests(bytes(tmp_path))
    assert len(digests.look_up([first.arguments])) == 1
    assert digests.settle([(BIRTH, DIGEST)]) == [DIGEST]
    assert digests.look_up([second.arguments]) == []
    assert digests.settle([]) == [DIGEST]


def test_extreme_numbers(tmp_path: Path) -> None:
    top, bottom = (1 << 63) - 1, -(1 << 63)
    files = [
        Seen((1 << 64) - 1, (1 << 64) - 1, top, bottom, bottom, folder=(1 << 64) - 1),
        Seen((1 << 64) - 1, 1 << 63, 0, top, top),
        Seen(1 << 63, (1 << 64) - 1, 1, 0, 0),
    ]
    ask(tmp_path, *files, digest=DIGEST)
    assert ask(tmp_path, *files) == [DIGEST] * 3


def many(count: int = 10_000) -> list[Seen]:
    """More than two blocks."""
    return [Seen(inode=number, name=b"%05d" % number) for number in range(1, count + 1)]


def test_files_that_came_went_or_moved_are_found(tmp_path: Path) -> None:
    files = many()
    ask(tmp_path, *files, digest=DIGEST)
    new = Seen(inode=99_999)
    moved = files[5000]._replace(folder=8)
    now = [*files[:10], new, *files[20:5000], *files[5001:9000], moved, *files[9500:]]
    known = [None if file is new else DIGEST for file in now]
    assert ask(tmp_path, *now, digest=OTHER) == known
    known[10] = OTHER
    assert ask(tmp_path, *now) == known
    assert ask(tmp_path, *files[10:20]) == [None] * 10, "what is not there is forgotten"


def test_the_same_files_are_not_written_again(tmp_path: Path) -> None:
    files = many()
    ask(tmp_path, *files, digest=DIGEST)
    before = (tmp_path / "digests").stat()
    ask(tmp_path, *files, digest=OTHER)
    assert (tmp_path / "digests").stat() == before
    ask(tmp_path, *files[:-1], digest=OTHER)
    assert (tmp_path / "digests").stat().st_ino != before.st_ino


def test_what_a_killed_commit_found_out_is_not_lost(tmp_path: Path) -> None:
    """Reading all content may take days, and be cut more than once."""
    files = many()
    for first in (0, 5000):
        digests = Digests(bytes(tmp_path))
        doubts = digests.look_up([file.arguments for file in files[first : first + 5000]])
        digests.settle([(BIRTH, DIGEST)] * len(doubts))
        del digests  # only whole blocks are written
    found = ask(tmp_path, *files)
    assert found == ([DIGEST] * 4096 + [None] * 904) * 2
    digests = Digests(bytes(tmp_path))
    digests.look_up([file.arguments for file in files[4096:5000]])
    digests.settle([(BIRTH, DIGEST)] * 904)
    digests.flush()
    assert ask(tmp_path, *files, digest=OTHER) == [DIGEST] * 9096 + [None] * 904
    assert [path.name for path in tmp_path.iterdir()] == ["digests"]
    assert ask(tmp_path, *files) == [DIGEST] * 9096 + [OTHER] * 904


def test_only_the_owner_reads_them(tmp_path: Path) -> None:
    ask(tmp_path, ONE, digest=DIGEST)
    assert stat.S_IMODE((tmp_path / "digests").stat().st_mode) == 0o600


def rubbish(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def header_alone(path: Path) -> None:
    os.truncate(path, 16)


def another_version(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"digests 1", b"digests 2"))


def zeros(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:16] + bytes(path.stat().st_size - 16))


@pytest.mark.parametrize("damage", [rubbish, nothing, header_alone, another_version, zeros])
def test_damaged_ones_are_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    files = many()
    ask(tmp_path, *files, digest=DIGEST)
    damage(tmp_path / "digests")
    assert ask(tmp_path, *files, digest=OTHER) == [None] * len(files)
    assert ask(tmp_path, *files) == [OTHER] * len(files)


def test_a_damaged_block_costs_its_files(tmp_path: Path) -> None:
    files = many()
    ask(tmp_path, *files, digest=DIGEST)
    path = tmp_path / "digests"
    data = bytearray(path.read_bytes())
    data[BLOCK_BYTES * 3 // 2] ^= 1
    path.write_bytes(data)
    expected = [DIGEST] * 4096 + [None] * 4096 + [DIGEST] * (len(files) - 8192)
    assert ask(tmp_path, *files) == expected


def test_one_that_was_cut_costs_the_rest(tmp_path: Path) -> None:
    files = many()
    ask(tmp_path, *files, digest=DIGEST)
    path = tmp_path / "digests"
    os.truncate(path, path.stat().st_size // 2)
    assert ask(tmp_path, *files, digest=OTHER) == [DIGEST] * 4096 + [None] * (len(files) - 4096)
    assert len(set(ask(tmp_path, *files))) == 2


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Digests(bytes(tmp_path / "absent"))
    (tmp_path / "digests").mkdir()
    with pytest.raises(OSError, match="directory"):
        ask(tmp_path, ONE)


def test_a_digest_of_another_length_is_refused(tmp_path: Path) -> None:
    digests = Digests(bytes(tmp_path))
    digests.look_up([ONE.arguments])
    with pytest.raises(ValueError, match="32 bytes"):
        digests.settle([(None, b"short")])
