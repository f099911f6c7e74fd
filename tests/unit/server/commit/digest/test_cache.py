"""The digest cache: right, quick, private, and thrown away as soon as it is damaged."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from huai_server.commit.digest.cache import (
    CachedDigest,
    CacheError,
    CtimeAttributes,
    DigestCache,
    Entry,
    Identity,
)

ONE = Identity(1, 2, 3, 4, 5)
DIGEST = b"\1" * 32
PLAIN = CtimeAttributes(0o644, 0, 0, 1, 7, b"name")
SAME = CachedDigest(DIGEST, same=True, birth=None, complete=True)
OLD_SCHEMA = """
CREATE TABLE digest (
    device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, digest BLOB,
    PRIMARY KEY (device, inode)
) WITHOUT ROWID
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "digests.sqlite"


def remembered(path: Path, *items: Identity, attributes: CtimeAttributes = PLAIN) -> None:
    cache = DigestCache(path)
    cache.remember(Entry(item, attributes, DIGEST, 11) for item in items)
    cache.close()


def known(
    path: Path, *items: Identity, attributes: CtimeAttributes = PLAIN
) -> dict[Identity, CachedDigest]:
    cache = DigestCache(path)
    try:
        return cache.lookup(dict.fromkeys(items, attributes))
    finally:
        cache.close()


@pytest.mark.parametrize("field", CtimeAttributes._fields)
def test_an_attribute_that_changed_explains_a_new_ctime_and_nothing_else(
    path: Path, field: str
) -> None:
    remembered(path, ONE)
    values: dict[str, Any] = {field: b"other" if field == "name" else 99}
    other = PLAIN._replace(**values)
    explained = CachedDigest(DIGEST, same=False, birth=11, complete=True)
    assert known(path, ONE._replace(ctime=6), attributes=other) == {
        ONE._replace(ctime=6): explained
    }
    assert known(path, ONE, attributes=other) == {ONE: SAME}, "another name of the same file"
    for item in (ONE._replace(size=6), ONE._replace(mtime=6), ONE._replace(inode=6)):
        assert known(path, item, attributes=other) == {}
        assert known(path, item._replace(ctime=6), attributes=other) == {}


def test_one_of_an_older_version_is_taken_over(path: Path) -> None:
    """To read all content again may take days."""
    with sqlite3.connect(path) as database:
        database.execute(OLD_SCHEMA)
        database.execute("INSERT INTO digest VALUES (?,?,?,?,?,?)", (*ONE, DIGEST))
    database.close()
    assert known(path, ONE) == {ONE: SAME._replace(complete=False)}
    moved = ONE._replace(ctime=6)
    other = PLAIN._replace(mode=0o600)
    assert known(path, moved, attributes=other) == {}, "what is not known explains nothing"
    remembered(path, ONE)
    assert set(known(path, moved, attributes=other)) == {moved}


@pytest.mark.parametrize("field", Identity._fields)
def test_any_other_identity_is_another_file(path: Path, field: str) -> None:
    remembered(path, ONE)
    assert known(path, ONE) == {ONE: SAME}
    assert known(path, ONE._replace(**{field: 99})) == {}


def test_the_newest_state_of_a_file_replaces_older_ones(path: Path) -> None:
    newer = ONE._replace(mtime=6, ctime=7)
    remembered(path, ONE)
    remembered(path, newer)
    assert known(path, ONE, newer) == {newer: SAME}


def test_extreme_numbers(path: Path) -> None:
    top, bottom = (1 << 63) - 1, -(1 << 63)
    items = [
        Identity((1 << 64) - 1, (1 << 64) - 1, top, bottom, bottom),
        Identity((1 << 64) - 1, 1 << 63, 0, top, top),
        Identity(1 << 63, (1 << 64) - 1, 1, 0, 0),
    ]
    remembered(path, *items)
    assert known(path, *items) == dict.fromkeys(items, SAME)


def test_many_files_on_two_devices(path: Path) -> None:
    items = [Identity(device, inode, 0, 0, 0) for device in (1, 2) for inode in range(3000)]
    remembered(path, *items)
    assert len(known(path, *items, ONE._replace(inode=9999))) == len(items)


def test_a_lookup_uses_the_primary_key(path: Path) -> None:
    """A cache of a million files must not be read whole for each batch."""
    cache = DigestCache(path)
    cache.remember(
        Entry(Identity(1, inode, 0, 0, 0), PLAIN, DIGEST, 11) for inode in range(100_000)
    )
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    cache._database.set_progress_handler(count, 1000)
    wanted = [Identity(1, inode, 0, 0, 0) for inode in range(0, 100_000, 1000)]
    assert len(cache.lookup(dict.fromkeys(wanted, PLAIN))) == 100
    cache.close()
    assert steps < 100, "a whole pass takes many hundred"


def test_only_the_owner_reads_it(path: Path) -> None:
    remembered(path, ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def rubbish(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def holes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)


def other_tables(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE digest (something INTEGER)")
    database.close()


@pytest.mark.parametrize("damage", [rubbish, nothing, cut, holes, other_tables])
def test_a_damaged_one_is_thrown_away(path: Path, damage: object) -> None:
    items = [Identity(1, inode, 0, 0, 0) for inode in range(2000)]
    remembered(path, *items)
    assert callable(damage)
    damage(path)
    cache = DigestCache(path)
    found = cache.lookup(dict.fromkeys(items, PLAIN))
    assert set(found.values()) <= {SAME}
    cache.remember([Entry(ONE, PLAIN, DIGEST, 11)])
    assert cache.lookup({ONE: PLAIN}) == {ONE: SAME}
    cache.close()
    assert len(found) < len(items)


@pytest.mark.parametrize("digest", [b"short", "text", None, 5])
def test_what_is_no_digest_is_not_believed(path: Path, digest: object) -> None:
    remembered(path, ONE)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE digest SET digest = ?", (digest,))
    database.close()
    assert known(path, ONE) == {}


def test_another_process_in_the_way_does_not_cost_the_cache(path: Path) -> None:
    remembered(path, ONE)
    with sqlite3.connect(path) as database:
        database.execute("BEGIN EXCLUSIVE")
        cache = DigestCache(path)
        cache._database.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(CacheError) as caught:
            cache.remember([Entry(ONE._replace(inode=9), PLAIN, DIGEST, 11)])
        cache.close()
        database.rollback()
    database.close()
    assert caught.value.exit_code == 11
    assert known(path, ONE) == {ONE: SAME}


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises((CacheError, OSError)):
        DigestCache(tmp_path / "d")
