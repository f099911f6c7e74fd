"""The digest cache: right, quick, private, and thrown away as soon as it is damaged."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from huai_server.digest.cache import CacheError, DigestCache, Identity

ONE = Identity(1, 2, 3, 4, 5)
DIGEST = b"\1" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "digests.sqlite"


def remembered(path: Path, *items: Identity) -> None:
    cache = DigestCache(path)
    cache.remember(dict.fromkeys(items, DIGEST))
    cache.close()


def known(path: Path, *items: Identity) -> dict[Identity, bytes]:
    cache = DigestCache(path)
    try:
        return cache.lookup(items)
    finally:
        cache.close()


@pytest.mark.parametrize("field", Identity._fields)
def test_any_other_identity_is_another_file(path: Path, field: str) -> None:
    remembered(path, ONE)
    assert known(path, ONE) == {ONE: DIGEST}
    assert known(path, ONE._replace(**{field: 99})) == {}


def test_the_newest_state_of_a_file_replaces_older_ones(path: Path) -> None:
    newer = ONE._replace(mtime=6, ctime=7)
    remembered(path, ONE)
    remembered(path, newer)
    assert known(path, ONE, newer) == {newer: DIGEST}


def test_extreme_numbers(path: Path) -> None:
    top, bottom = (1 << 63) - 1, -(1 << 63)
    items = [
        Identity((1 << 64) - 1, (1 << 64) - 1, top, bottom, bottom),
        Identity((1 << 64) - 1, 1 << 63, 0, top, top),
        Identity(1 << 63, (1 << 64) - 1, 1, 0, 0),
    ]
    remembered(path, *items)
    assert known(path, *items) == dict.fromkeys(items, DIGEST)


def test_many_files_on_two_devices(path: Path) -> None:
    items = [Identity(device, inode, 0, 0, 0) for device in (1, 2) for inode in range(3000)]
    remembered(path, *items)
    assert len(known(path, *items, ONE._replace(inode=9999))) == len(items)


def test_a_lookup_uses_the_primary_key(path: Path) -> None:
    """A cache of a million files must not be read whole for each batch."""
    cache = DigestCache(path)
    cache.remember({Identity(1, inode, 0, 0, 0): DIGEST for inode in range(100_000)})
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    cache._database.set_progress_handler(count, 1000)
    assert (
        len(cache.lookup([Identity(1, inode, 0, 0, 0) for inode in range(0, 100_000, 1000)])) == 100
    )
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
    found = cache.lookup(items)
    assert set(found.values()) <= {DIGEST}
    cache.remember({ONE: DIGEST})
    assert cache.lookup([ONE]) == {ONE: DIGEST}
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
            cache.remember({ONE._replace(inode=9): DIGEST})
        cache.close()
        database.rollback()
    database.close()
    assert caught.value.exit_code == 11
    assert known(path, ONE) == {ONE: DIGEST}


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises((CacheError, OSError)):
        DigestCache(tmp_path / "d")
