"""Files with first fetches: made once for each commit, dropped when there are too many."""

import asyncio
import os
from pathlib import Path

import pytest

from huai_server.http.git.plain_fetch import PlainFetch
from huai_server.http.git.ready_packs import ReadyPacks
from huai_server.store.repository import Repository
from tests.support.committing import Upstream
from tests.support.processes import open_paths


def upstream(folder: Path) -> Upstream:
    made = Upstream(folder)
    for number in range(50):
        made.write(f"f{number}", str(number))
    made.commit()
    return made


def open_files(folder: Path) -> int:
    """How many files without a name there are in a folder."""
    paths = open_paths(os.getpid())
    return sum(path.startswith(f"{folder}/") and path.endswith(" (deleted)") for path in paths)


async def size(ready: ReadyPacks, one: Upstream, want: str = "") -> int | None:
    """Of the pack of a first fetch."""
    head = Repository(one.places.repository).head()
    assert head is not None
    fetch = PlainFetch(want or head.commit, ())
    async with ready.find(one.places.repository, head.commit, fetch) as pack:
        if pack is None:
            return None
        assert os.pread(pack.handle, 4, 0) == b"PACK"
        return pack.size


def test_one_file_for_each_commit(tmp_path: Path) -> None:
    one = upstream(tmp_path / "one")
    spool = tmp_path / "spool"
    spool.mkdir()

    async def run() -> None:
        ready = ReadyPacks(spool, 1 << 20)
        old = one.head.commit
        found = await asyncio.gather(*(size(ready, one) for _ in range(9)))
        assert len(set(found)) == 1
        one.write("more", "x" * 99)
        one.commit()
        assert (await size(ready, one) or 0) > (found[0] or 0)
        assert await size(ready, one, want=old) is None
        assert open_files(spool) == 1
        assert list(spool.iterdir()) == []

    asyncio.run(run())


def test_whoever_reads_a_file_keeps_it(tmp_path: Path) -> None:
    one = upstream(tmp_path / "one")

    async def run() -> None:
        ready = ReadyPacks(tmp_path, 1 << 20)
        fetch = PlainFetch(one.head.commit, ())
        async with ready.find(one.places.repository, fetch.want, fetch) as pack:
            assert pack is not None
            one.write("more")
            one.commit()
            assert await size(ready, one)
            assert len(os.pread(pack.handle, pack.size, 0)) == pack.size

    asyncio.run(run())


def test_all_files_together_keep_to_the_limit(tmp_path: Path) -> None:
    all_of_them = [upstream(tmp_path / str(number)) for number in range(3)]

    async def run() -> None:
        each = await size(ReadyPacks(tmp_path, 1 << 20), all_of_them[0])
        assert each is not None
        spool = tmp_path / "spool"
        spool.mkdir()
        ready = ReadyPacks(spool, each * 5 // 2)
        for one in all_of_them * 2:
            assert await size(ready, one)
            await asyncio.sleep(0)
            assert open_files(spool) <= 2
        assert await size(ReadyPacks(tmp_path, each // 2), all_of_them[0]) is None

    asyncio.run(run())


@pytest.mark.parametrize("name", ["missing", "file"])
def test_without_a_folder_there_is_none(tmp_path: Path, name: str) -> None:
    one = upstream(tmp_path / "one")
    (tmp_path / "file").touch()
    assert asyncio.run(size(ReadyPacks(tmp_path / name, 1 << 20), one)) is None
