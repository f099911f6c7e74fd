"""Block indices in the repository: which are made, and how long they stay."""

import os
import time
from pathlib import Path

import pytest
from blake3 import blake3

from huai_native._native import BlockIndex
from huai_program.packs import TEMPORARY
from huai_server.store.block_indices import BlockIndices, block_index_path
from tests.support.committing import Upstream
from tests.support.schema.block_index import block_index

DAY = 86_400
SIZE = 200_000


@pytest.fixture(name="up")
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.configure(block_index=131_072)
    return upstream


def text(letter: str, size: int = SIZE) -> str:
    return letter * size


def place(up: Upstream, content: str) -> Path:
    return block_index_path(up.places.repository, blake3(content.encode()).digest())


def test_large_files_get_one(up: Upstream) -> None:
    up.write("small", text("s", 131_071))
    up.write("a", text("a"))
    up.write("same", text("a"))
    up.write("b", text("b"))
    result = up.commit()
    assert result.hashed_files == 4
    for letter in "ab":
        assert place(up, text(letter)).read_bytes() == block_index(text(letter).encode())
    assert len([*(up.places.repository / "blocks").glob("*/*")]) == 2
    assert up.repository.snapshot(up.head)[0].blocks == 131_072
    up.prove_sound()


@pytest.mark.parametrize("off", [{"block_index": 0}, {"digest": "off"}])
def test_none_is_made_if_none_is_wanted(up: Upstream, off: dict[str, object]) -> None:
    up.configure(**off)
    up.write("a", text("a"))
    up.commit()
    assert not (up.places.repository / "blocks").exists()
    assert up.repository.snapshot(up.head)[0].blocks == 0


def looked(up: Upstream) -> Path:
    return up.places.repository / "blocks" / "looked"


def test_an_index_stays_for_a_month_after_its_file(up: Upstream) -> None:
    now = time.time()
    up.write("a", text("a"))
    up.write("b", text("b"))
    up.commit()
    up.write("a", text("c"))
    up.commit()
    indices, snapshot = BlockIndices(up.places.repository), up.repository.snapshot(up.head)[1]
    for letter in "abc":
        assert place(up, text(letter)).exists()
    for days in range(2, 40, 2):
        indices.prune(snapshot, now + days * DAY)
        assert place(up, text("a")).exists() == (days <= 30)
        assert place(up, text("b")).exists()
        assert place(up, text("c")).exists()


def test_it_is_looked_once_a_day(up: Upstream) -> None:
    up.write("a", text("a"))
    up.commit()
    former_time = looked(up).stat().st_mtime
    old = place(up, text("a"))
    os.utime(old, (1, 1))
    up.write("a", text("b"))
    up.commit()
    assert looked(up).stat().st_mtime == former_time
    assert old.exists()
    for letter, at in (("c", 1.0), ("d", time.time() + 10 * DAY)):  # or a clock was wrong then
        os.utime(looked(up), (at, at))
        up.write("a", text(letter))
        up.commit()
        assert not old.exists()
        old = place(up, text(letter))
        os.utime(old, (1, 1))


def test_several_processes_may_write_at_a_time(
    up: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, waiting, fsync = BlockIndices.write, list[BlockIndex](), os.fsync
    up.write("a", text("a"))
    up.write("b", text("b"))
    with monkeypatch.context() as patched:
        patched.setattr(BlockIndices, "write", lambda _, index: waiting.append(index))
        up.commit()

    def write_other(handle: int) -> None:
        if waiting:
            write(BlockIndices(up.places.repository), waiting.pop())
        fsync(handle)

    (up.places.repository / "blocks").mkdir(exist_ok=True)
    monkeypatch.setattr(os, "fsync", write_other)
    write(BlockIndices(up.places.repository), waiting.pop())
    up.prove_sound()
    for letter in "ab":
        assert place(up, text(letter)).read_bytes() == block_index(text(letter).encode())


@pytest.mark.parametrize("age", [0, 2 * DAY])
def test_what_a_killed_run_left_is_in_nobody_s_way(up: Upstream, age: int) -> None:
    folder = up.places.repository / "blocks"
    up.commit(allow_empty=True)
    folder.mkdir()
    torn = folder / f"{TEMPORARY}index"
    torn.write_bytes(b"torn")
    os.utime(torn, (time.time() - age,) * 2)
    up.write("a", text("a"))
    up.commit()
    assert place(up, text("a")).exists()
    assert torn.exists() == (age == 0)


@pytest.mark.parametrize("damage", [b"", b"x" * 36, None])
def test_a_damaged_index_is_named(up: Upstream, damage: bytes | None) -> None:
    up.write("a", text("a"))
    up.write("b", text("b"))
    up.commit()
    path = place(up, text("a"))
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:] if damage is None else damage)
    (fault,) = up.check().faults
    assert str(path) in fault
    path.unlink()
    up.prove_sound()
