"""Objects of packs on the disk, sound and damaged."""

import os
import zlib
from hashlib import sha1
from pathlib import Path

import pytest

from huai_native._native import Packs
from huai_schema.errors import FormatError
from tests.support.git_objects import object_id
from tests.support.packs import (
    appended,
    delta,
    full_record,
    insert,
    make_index,
    on_name,
    on_offset,
    pack,
    record,
)

TEXT = b"a line of text\n" * 20
NAME = object_id("blob", TEXT)
LONGER, LONGEST = TEXT + b"x", TEXT + b"xy"


def opened(folder: Path) -> Packs:
    packs = Packs(1 << 20)
    packs.add(os.fsencode(folder))
    return packs


def written(folder: Path, records: dict[bytes, bytes], name: str = "pack-1") -> Path:
    """A pack of records by id, with its index; not held against each other."""
    places, offset = [], 12
    for oid, packed in records.items():
        places.append((oid, offset, zlib.crc32(packed)))
        offset += len(packed)
    content = pack([*records.values()])
    (folder / f"{name}.idx").write_bytes(make_index(places, content[-20:]))
    path = folder / f"{name}.pack"
    path.write_bytes(content)
    return path


def chain() -> dict[bytes, bytes]:
    first = full_record(TEXT, "tree")
    second = on_offset(len(first), appended(TEXT, b"x"))
    third = on_name(object_id("tree", LONGER), appended(LONGER, b"y"))
    contents = (TEXT, LONGER, LONGEST)
    return dict(
        zip([object_id("tree", each) for each in contents], (first, second, third), strict=True)
    )


def test_whole_objects_and_deltas(tmp_path: Path) -> None:
    written(tmp_path, chain())
    packs = opened(tmp_path)
    for content in (LONGEST, TEXT, LONGER):
        oid = object_id("tree", content)
        assert oid in packs
        assert packs.find(oid) == ("tree", content)
    assert NAME not in packs
    assert packs.find(NAME) is None


def test_what_comes_later_is_found_and_what_went_is_forgotten(tmp_path: Path) -> None:
    packs = opened(tmp_path / "objects")
    packs.add(os.fsencode(tmp_path / "other"))
    assert packs.find(NAME) is None
    for folder in ("objects", "other"):
        (tmp_path / folder).mkdir()
    path = written(tmp_path / "objects", {NAME: full_record(TEXT)})
    other = object_id("blob", b"other")
    written(tmp_path / "other", {other: full_record(b"other")}, "pack-2")
    assert packs.find(NAME) == ("blob", TEXT)
    assert packs.find(other) == ("blob", b"other")
    path.with_suffix(".idx").unlink()
    path.unlink()
    packs.forget()
    assert NAME not in packs
    assert packs.find(other) == ("blob", b"other")


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (record(3, TEXT, size=5), "another size"),
        (record(3, TEXT, size=(64 << 20) + 1), "limit"),
        (record(4, b"a tag"), "not a commit, a tree or a blob"),
        (record(3, TEXT)[:-9], "another size|damaged"),
        (on_offset(13, appended(TEXT, b"x")), "without its base"),
        (on_offset(0, appended(TEXT, b"x")), "without its base"),
        (on_name(object_id("blob", b"nowhere"), appended(TEXT, b"x")), "without its base"),
        (on_name(NAME, appended(TEXT, b"x")), "chain of more than 4095"),
        (on_offset(5, appended(TEXT, b"x")), "damaged|not a commit|without an end|size"),
    ],
)
def test_a_wrong_record_is_refused(tmp_path: Path, packed: bytes, reason: str) -> None:
    written(tmp_path, {NAME: packed})
    with pytest.raises(FormatError, match=reason) as caught:
        opened(tmp_path).find(NAME)
    assert NAME.hex() in str(caught.value)


def test_small_objects_of_large_ones_cost_a_bounded_sum(tmp_path: Path) -> None:
    base = bytes(1 << 20)
    records = {object_id("tree", base): full_record(base, "tree")}
    small = [b"first", b"second"]
    for content in small:
        change = delta(len(base), len(content), insert(content))
        records[object_id("tree", content)] = on_name(object_id("tree", base), change)
    written(tmp_path, records)
    trusted, bounded = opened(tmp_path), Packs(0, 1 << 20)
    bounded.add(os.fsencode(tmp_path))
    for content in small:
        assert trusted.find(object_id("tree", content)) == ("tree", content)
    assert bounded.find(object_id("tree", small[0])) == ("tree", small[0])
    with pytest.raises(FormatError, match="small objects made from large ones"):
        bounded.find(object_id("tree", small[-1]))


def test_a_chain_of_objects_of_one_size_costs_nothing_to_spare(tmp_path: Path) -> None:
    written(tmp_path, chain())
    packs = Packs(0, 0)
    packs.add(os.fsencode(tmp_path))
    for content in (LONGEST, TEXT, LONGER) * 8:
        assert packs.find(object_id("tree", content)) == ("tree", content)


def test_a_large_index_is_read_by_place(tmp_path: Path) -> None:
    """Its checksum is not looked at; what is wrong in it shows, or the object is not found."""
    fillers = {sha1(b"%d" % each, usedforsecurity=False).digest(): b"" for each in range(12_000)}
    index = written(tmp_path, {NAME: full_record(TEXT), **fillers}).with_suffix(".idx")
    sound = index.read_bytes()
    assert len(sound) > 256 << 10
    packs = opened(tmp_path)
    assert packs.find(NAME) == ("blob", TEXT)
    assert all(each in packs for each in fillers)
    assert bytes(20) not in packs
    number = sorted([NAME, *fillers]).index(NAME)
    count = len(fillers) + 1
    for at, reason in (
        (0, "damaged pack index"),
        (1031, "damaged pack index"),
        (1032 + 20 * number, "damaged pack index"),
        (1032 + 20 * count + 4 * number, "bytes are damaged"),
        (1032 + 24 * count + 4 * number, "damaged pack index"),  # one of large offsets
        (1035 + 24 * count + 4 * number, "damaged|without an end|another size"),
    ):
        broken = bytearray(sound)
        broken[at] ^= 0x81
        index.write_bytes(broken)
        with pytest.raises(FormatError, match=reason):
            opened(tmp_path).find(NAME)
    index.write_bytes(sound[:-1])
    with pytest.raises(FormatError, match="damaged pack index"):
        opened(tmp_path).find(NAME)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, {NAME: full_record(TEXT)})
    packs = opened(tmp_path)
    assert packs.find(NAME)
    path.write_bytes(path.read_bytes()[:20])
    packs.forget()
    with pytest.raises((OSError, FormatError)):
        packs.find(NAME)
    path.unlink()
    packs.forget()
    assert packs.find(NAME) is None
