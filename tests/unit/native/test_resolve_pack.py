"""Packs that are right, and every way found to make one wrong."""

import signal
from hashlib import sha1
from itertools import pairwise
from pathlib import Path

import pytest

from huai_client.metadata.git.objects import GitObject
from huai_native._native import install_pack
from huai_schema.errors import FormatError, MissingObjectError
from huai_schema.git.objects import TreeItem, encode_tree
from huai_schema.limits import OBJECT_BYTES
from tests.support.git_objects import object_id
from tests.support.packs import (
    PackObjects,
    appended,
    copy,
    delta,
    full_record,
    ids,
    insert,
    on_name,
    on_offset,
    pack,
    pack_header,
    record,
    resolve,
)

OBJECTS = 1 << 20
"""As many as a pack may hold."""
CHAIN_DEPTH = 64
"""As many deltas as may follow each other."""

TEXT = b"a line of text\n" * 20
NAME = object_id("blob", TEXT)


def refused(packed: bytes, reason: str, objects: PackObjects | None = None) -> None:
    with pytest.raises(FormatError, match=reason):
        resolve(packed, objects)


def test_a_base_that_is_here_is_added_once() -> None:
    local = PackObjects()
    local.blob(TEXT)
    records = [on_name(NAME, appended(TEXT, b"%d" % number)) for number in range(5)]
    places = resolve(pack(records), local)
    assert set(places) == ids([TEXT, *(TEXT + b"%d" % number for number in range(5))])
    assert max(places.values()) == places[NAME]


def test_a_base_that_is_here_is_read_again_without_room() -> None:
    class Counting(PackObjects):
        reads = 0

        def find(self, oid: bytes) -> GitObject | None:
            self.reads += 1
            return super().find(oid) if self.reads <= self.most else None

        def __init__(self, most: int) -> None:
            super().__init__()
            self.most = most
            self.blob(TEXT)

    local = Counting(3)
    second = TEXT + b"2"
    records = [
        on_name(NAME, appended(TEXT, b"1")),
        on_name(NAME, appended(TEXT, b"2")),
        on_name(NAME, appended(TEXT, b"3")),
        on_name(object_id("blob", second), appended(second, b"4")),
        on_name(object_id("blob", second), appended(second, b"5")),
    ]
    places = resolve(pack(records), local, room=0)
    assert local.reads == 3  # the last time to add its record
    assert set(places) == ids(TEXT + end for end in (b"", b"1", b"2", b"3", b"24", b"25"))
    for most in (1, 2):
        with pytest.raises(FormatError, match="can no longer be read"):
            resolve(pack(records), Counting(most), room=0)


def test_deltas_that_need_each_other() -> None:
    one, two = object_id("blob", b"1"), object_id("blob", b"2")
    refused(
        pack([on_name(one, delta(1, 1, insert(b"2"))), on_name(two, delta(1, 1, insert(b"1")))]),
        "missing object",
    )


def test_a_chain_as_long_as_git_writes_them_and_one_longer() -> None:
    contents = [b"%08d" % number for number in range(CHAIN_DEPTH + 2)]
    records = [full_record(contents[0])]
    for content in contents[1:]:
        records.append(on_offset(len(records[-1]), delta(8, 8, insert(content))))
    places = resolve(pack(records[:-1]), room=0)
    assert len(places) == CHAIN_DEPTH + 1
    refused(pack([*records, on_offset(len(records[-1]), delta(8, 1, insert(b"x")))]), "chain")


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"", "not a complete pack"),
        (b"PACK", "not a complete pack"),
        (pack([full_record(b"x")], count=2), "without an end|cannot hold|damaged"),
        (pack([full_record(b"x"), full_record(b"y")], count=1), "more bytes than objects"),
        (pack([full_record(b"x")], count=OBJECTS + 1), "cannot hold"),
        (pack([full_record(b"x")], count=0xFFFFFFFF), "cannot hold"),
        (pack([full_record(b"x"), b"rubbish"]), "cannot hold"),
        (pack([full_record(b"x"), full_record(b"x")]), "twice"),
        (pack([full_record(TEXT), on_name(NAME, delta(300, 300, copy(0, 300)))]), "twice"),
        (pack([record(3, b"four", size=3)]), "another size"),
        (pack([record(3, b"four", size=5)]), "another size"),
        (pack([record(3, b"four", size=OBJECT_BYTES + 1)]), "limit"),
        (pack([record(4, b"a tag")]), "not a commit, a tree or a blob"),
        (pack([record(0, b"nothing")]), "not a commit, a tree or a blob"),
        (pack([record(5, b"reserved")]), "not a commit, a tree or a blob"),
        (pack([on_offset(0, appended(TEXT, b"x"))]), "no object begins"),
        (pack([full_record(TEXT), on_offset(3, appended(TEXT, b"x"))]), "no object begins"),
        (pack([full_record(TEXT), on_offset(1 << 40, appended(TEXT, b"x"))]), "no object begins"),
        (pack([full_record(TEXT), on_name(NAME, b"\x80")]), "ends early"),
        (pack([b"\xff" * 40]), "impossible size"),
    ],
)
def test_wrong_packs(packed: bytes, reason: str) -> None:
    refused(packed, reason)


def test_another_version() -> None:
    body = pack_header(0)[:4] + b"\0\0\0\x04" + pack_header(0)[8:]
    refused(body + sha1(body).digest(), "version 2")  # noqa: S324 - git's


def test_an_object_that_inflates_to_more_than_it_says_is_given_up_at_once() -> None:
    # 64 MiB in 64 KiB, and it says 10 bytes.
    refused(pack([record(3, bytes(64 << 20), size=10)]), "another size")


def test_a_bomb_is_stopped_by_the_work_it_makes() -> None:
    megabyte = bytes(1 << 20)
    grow = delta(len(megabyte), 8 << 20, b"\xf0\0\0\x10" * 8)
    records = [full_record(megabyte), on_name(object_id("blob", megabyte), grow)]
    places = resolve(pack(records), work=12 << 20)
    assert len(places) == 2
    with pytest.raises(FormatError, match="unfolds to more"):
        resolve(pack(records), work=9 << 20)


def test_forgetting_costs_work_too() -> None:
    # Branches at every link of a chain: without room, each is made from the start again.
    contents = [b"%03d" % number * 200 for number in range(60)]
    records = [full_record(contents[0])]
    for before, content in pairwise(contents):
        change = delta(600, 600, *(insert(content[at : at + 100]) for at in range(0, 600, 100)))
        records.append(on_name(object_id("blob", before), appended(before, b"!")))
        records.append(on_name(object_id("blob", before), change))
    enough = resolve(pack(records), work=2_000_000)
    assert enough.keys() == resolve(pack(records), room=0, work=1 << 30).keys()
    with pytest.raises(FormatError, match="unfolds to more"):
        resolve(pack(records), room=0, work=2_000_000)


def deep(count: int) -> bytes:
    """A pack that takes long: every object of a chain is made from the start again."""
    contents = [b"%08d" % number + bytes(1 << 20) for number in range(count)]
    records = [full_record(contents[0])]
    for before, content in pairwise(contents):
        step = delta(len(before), len(before), insert(content[:8]), copy(8, 1 << 20))
        records.append(on_name(object_id("blob", before), appended(before, b"!")))
        records.append(on_name(object_id("blob", before), step))
    return pack(records)


def test_a_signal_ends_it() -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        resolve(deep(60), room=0, work=1 << 40, check=interrupt)


def test_an_error_of_the_caller_comes_back_as_it_is() -> None:
    error = OSError(28, "no space")

    class Failing(PackObjects):
        def find(self, _: bytes) -> GitObject | None:
            raise error

    with pytest.raises(OSError, match="no space") as caught:
        resolve(pack([on_name(NAME, appended(TEXT, b"x"))]), Failing())
    assert caught.value is error


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        install_pack(
            bytes(tmp_path), b"none", PackObjects(), lambda: None, target=None, work=1, room=(1, 1)
        )


def test_what_names_others_is_kept_and_bounded() -> None:
    trees = [b"100644 %03d\0" % number + NAME for number in range(100)]
    oids = [object_id("tree", tree) for tree in trees]
    top = encode_tree([TreeItem(b"%03d" % at, oid, is_tree=True) for at, oid in enumerate(oids)])
    commit = b"tree %b\nx" % object_id("tree", top).hex().encode()
    records = [full_record(TEXT), *(full_record(tree, "tree") for tree in [*trees, top])]
    packed, oid = pack([*records, full_record(commit, "commit")]), object_id("commit", commit)
    assert len(resolve(packed, target=(oid, []))) == 103
    with pytest.raises(FormatError, match="trees of more bytes than the limit"):
        resolve(packed, naming=10_000)
    for at in range(102):
        with pytest.raises(MissingObjectError, match="left out"):
            resolve(
                pack([*records[:at], *records[at + 1 :], full_record(commit, "commit")]),
                target=(oid, []),
            )
    with pytest.raises(MissingObjectError, match="the commit is missing"):
        resolve(pack(records), target=(oid, []))
