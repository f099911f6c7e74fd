"""Packs on the disk, and the list of shallow commits."""

import stat
from itertools import pairwise
from pathlib import Path

import pytest

from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import WORK_BYTES, WORK_PER_BYTE, WorkLimit
from huai_client.metadata.git.objects import GitObject, Objects
from huai_native._native import Packs
from huai_schema.errors import FormatError
from tests.support.git_objects import object_id
from tests.support.http_fixtures import git
from tests.support.packs import (
    PackObjects,
    appended,
    copy,
    delta,
    full_record,
    ids,
    on_name,
    pack,
    record,
)

TEXT = b"a line of text\n" * 20
NOISE = bytes(range(256)) * 20


def install(folder: Path, packed: bytes, objects: Objects | None = None) -> Path | None:
    with IncomingPack(folder) as incoming:
        for at in range(0, len(packed), 7):
            incoming.write(packed[at : at + 7])
        return incoming.install(PackObjects() if objects is None else objects, WorkLimit())[0]


def test_a_pack_may_unfold_in_proportion_to_its_bytes(tmp_path: Path) -> None:
    base = bytes(1 << 20)
    deltas = [appended(base, b"%d" % number) for number in range(8)]
    packed = pack([full_record(base), *(on_name(object_id("blob", base), each) for each in deltas)])

    def left(limit: int) -> int:
        """Return the rest of a work of `limit`."""
        work = WorkLimit(limit)
        with IncomingPack(tmp_path) as incoming:
            incoming.write(packed)
            incoming.install(PackObjects(), work)
        return work.left

    allowed = WORK_PER_BYTE * len(packed)
    total = (1 << 30) + allowed - left(1 << 30)
    assert 9 * len(base) < total < 11 * len(base)
    assert left(total - allowed) == 0
    with pytest.raises(FormatError, match="unfolds to more"):
        left(total - allowed - 1)


def test_no_pack_unfolds_to_more_than_the_limit() -> None:
    work = WorkLimit()
    work.allow(1 << 40)
    assert work.left == WORK_BYTES


def test_a_pack_is_installed_as_it_came(tmp_path: Path) -> None:
    packed = pack([full_record(TEXT), full_record(NOISE)])
    install(tmp_path, packed)
    name = f"pack-{packed[-20:].hex()}"
    assert (tmp_path / f"{name}.pack").read_bytes() == packed
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.pack", f"{name}.idx"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o444 for path in tmp_path.iterdir())
    git("verify-pack", tmp_path / f"{name}.idx")


@pytest.mark.parametrize("base", [TEXT, NOISE, b"", bytes(1 << 20)])
def test_a_thin_pack_gets_its_bases(tmp_path: Path, base: bytes) -> None:
    objects = PackObjects()
    oid = objects.blob(base)
    install(tmp_path, pack([full_record(b"other"), on_name(oid, appended(base, b"x"))]), objects)
    assert installed(tmp_path) == ids([base, b"other", base + b"x"])


def test_a_base_that_lies_in_a_pack_is_copied(tmp_path: Path) -> None:
    copied = record(3, NOISE, level=1)
    assert copied != full_record(NOISE)
    install(tmp_path / "one", pack([copied]))
    delta = on_name(object_id("blob", NOISE), appended(NOISE, b"x"))
    path = install(tmp_path / "two", pack([delta]), Lying(tmp_path / "one"))
    assert path is not None
    assert path.read_bytes()[12:-20] == delta + copied


class Lying:
    """Reads the objects of installed packs."""

    def __init__(self, *folders: Path) -> None:
        self.packs = Packs(1 << 20)
        for folder in folders:
            self.packs.add(bytes(folder))

    def find(self, oid: bytes) -> GitObject | None:
        item = self.packs.find(oid)
        return GitObject(*item) if item else None

    def __contains__(self, oid: bytes) -> bool:
        return oid in self.packs


def versions(count: int) -> list[bytes]:
    """Return contents, each made of the one before."""
    return [NOISE + b"x" * number for number in range(count)]


def chained(texts: list[bytes]) -> list[bytes]:
    """Return records: the first is whole, each other is a delta on the one before."""
    deltas = [
        on_name(object_id("blob", one), appended(one, other[len(one) :]))
        for one, other in pairwise(texts)
    ]
    return [full_record(texts[0]), *deltas]


def installed(folder: Path) -> set[bytes]:
    """Return git's listing of the only pack, all of which it must be able to read."""
    (index,) = folder.glob("*.idx")
    lines = git("verify-pack", "-v", index).splitlines()
    git("index-pack", "--strict", "-o", folder / "again.idx", index.with_suffix(".pack"))
    assert (folder / "again.idx").read_bytes() == index.read_bytes()
    (folder / "again.idx").unlink()
    return {bytes.fromhex(line[:40]) for line in lines if line[40:41] == " "}


@pytest.mark.parametrize(("count", "copied"), [(1, 1), (2, 2), (9, 9), (10, 1), (30, 1)])
def test_a_base_comes_with_what_it_is_made_from(tmp_path: Path, count: int, copied: int) -> None:
    texts = versions(count)
    install(tmp_path / "one", pack(chained(texts)))
    objects = Lying(tmp_path / "one")
    last = texts[-1]
    more = last + b"y"
    install(
        tmp_path / "two", pack([on_name(object_id("blob", last), appended(last, b"y"))]), objects
    )
    assert installed(tmp_path / "two") == ids([more, *texts[-copied:]])


def test_bases_that_are_made_from_one_another_come_once(tmp_path: Path) -> None:
    texts = versions(5)
    install(tmp_path / "one", pack(chained(texts)))
    deltas = [
        on_name(object_id("blob", text), appended(text, b"y")) for text in (texts[2], texts[4])
    ]
    install(tmp_path / "two", pack(deltas), Lying(tmp_path / "one"))
    assert installed(tmp_path / "two") == ids([*texts, texts[2] + b"y", texts[4] + b"y"])


def test_what_came_may_be_made_from_a_base_that_is_made_from_it(tmp_path: Path) -> None:
    texts = versions(2)
    install(tmp_path / "one", pack(chained(texts)))
    oids = [object_id("blob", text) for text in texts]
    back = on_name(oids[1], delta(len(texts[1]), len(texts[0]), copy(0, len(texts[0]))))
    install(tmp_path / "two", pack([back]), Lying(tmp_path / "one"))
    assert installed(tmp_path / "two") == set(oids)


def test_packs_that_make_objects_from_one_another(tmp_path: Path) -> None:
    texts = versions(2)
    oids = [object_id("blob", text) for text in texts]
    back = on_name(oids[1], delta(len(texts[1]), len(texts[0]), copy(0, len(texts[0]))))
    install(tmp_path / "one", pack(chained(texts)))
    install(tmp_path / "other", pack([full_record(texts[1]), back]))
    for number, folders in enumerate((["one", "other"], ["other", "one"])):
        objects = Lying(*(tmp_path / folder for folder in folders))
        deltas = [on_name(oid, appended(text, b"y")) for oid, text in zip(oids, texts, strict=True)]
        install(tmp_path / str(number), pack(deltas), objects)
        assert installed(tmp_path / str(number)) == ids([*texts, *(text + b"y" for text in texts)])


def test_no_record_is_made_of_damaged_bytes(tmp_path: Path) -> None:
    path = install(tmp_path / "one", pack([full_record(TEXT)]))
    assert path is not None
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    thin = pack([on_name(object_id("blob", TEXT), appended(TEXT, b"x"))])
    with pytest.raises(FormatError, match="damaged"):
        install(tmp_path / "two", thin, Lying(tmp_path / "one"))
    assert not list((tmp_path / "two").iterdir())


def test_an_empty_pack_leaves_nothing(tmp_path: Path) -> None:
    assert install(tmp_path, pack([])) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("packed", [b"", b"PACK", pack([full_record(TEXT)])[:-1], b"<html>" * 100])
def test_what_is_no_pack_leaves_nothing(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(FormatError):
        install(tmp_path, packed)
    assert not list(tmp_path.iterdir())


def test_a_thin_pack_without_its_base_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="missing object"):
        install(tmp_path, pack([on_name(object_id("blob", TEXT), appended(TEXT, b"x"))]))
    assert not list(tmp_path.iterdir())


def test_a_base_that_comes_after_all_is_refused(tmp_path: Path) -> None:
    # A base that is in the pack by a delta against a local object would be in the index twice.
    # Bases are searched in the order of their ids.
    text = next(
        text
        for text in (b"%050d" % number for number in range(100))
        if object_id("blob", text + b"2") < object_id("blob", text)
    )
    objects = PackObjects()
    one, two = objects.blob(text), objects.blob(text + b"2")
    records = [on_name(two, appended(text + b"2", b"3")), on_name(one, appended(text, b"2"))]
    with pytest.raises(FormatError, match="later object"):
        install(tmp_path, pack(records), objects)
    assert not list(tmp_path.iterdir())
