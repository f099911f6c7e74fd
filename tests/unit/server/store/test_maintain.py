"""Maintenance of a repository: few packs have all objects, and none that is read goes too early."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_program.locking import LockedError, locked
from huai_program.packs import TEMPORARY
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.git.objects import Kind
from huai_server.store.git_program import GitMissingError
from huai_server.store.loose import read_loose
from huai_server.store.maintain import Maintained, foresee, maintain
from huai_server.store.pack_files import PackIndexError, list_packs
from huai_server.store.repack import Repack
from huai_server.store.replaced import KEPT
from tests.support.committing import Upstream

COMMITS = 12


def replaced_packs(folder: Path) -> Iterator[Path]:
    return folder.glob("pack-*.replaced")


NOW = 1_900_000_000


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """Make a module with a dozen commits."""
    upstream = Upstream(tmp_path)
    for number in range(400):
        upstream.write(f"d{number % 5}/f{number}", str(number), mtime=1_600_000_000 + number)
    upstream.commit()
    for number in range(1, COMMITS):
        change(upstream, number)
    return upstream


def change(upstream: Upstream, number: int) -> str:
    upstream.write(f"d{number % 5}/f{number}", f"new {number}", mtime=1_700_000_000 + number)
    return upstream.commit().head.commit


def run(upstream: Upstream, now: float = NOW) -> Maintained:
    return maintain(upstream.places, lambda: upstream.module.retention, now=now)


def packs(upstream: Upstream) -> list[Path]:
    return [pack.path for pack in list_packs(upstream.repository.pack_folder)]


def objects(upstream: Upstream) -> set[str]:
    """Return all objects that git finds."""
    listing = upstream.git("cat-file", "--batch-all-objects", "--batch-check", "--unordered")
    return {line.split()[0] for line in listing.splitlines()}


def test_many_packs_become_one(upstream: Upstream) -> None:
    before, head = objects(upstream), upstream.head
    done = run(upstream)
    assert done.plan == (COMMITS, COMMITS + 1, 0)
    assert (done.before.packs.files, done.before.loose.files) == (COMMITS, COMMITS)
    assert (done.after.packs.files, done.after.loose.files) == (1, 0)
    assert done.after.replaced.files == COMMITS + 1
    assert done.after.packs.bytes < done.before.packs.bytes / 2
    assert objects(upstream) == before
    assert (upstream.head, upstream.check().commits) == (head, COMMITS)
    upstream.prove_sound()


def test_a_second_time_there_is_nothing_to_do(upstream: Upstream) -> None:
    run(upstream)
    before = sorted(upstream.root.rglob("*"))
    assert run(upstream).plan == (0, 0, 0)
    assert sorted(upstream.root.rglob("*")) == before


def test_what_is_foreseen_is_done(upstream: Upstream) -> None:
    before = sorted(upstream.root.rglob("*"))
    plan, use = foresee(upstream.places, upstream.module.retention, now=NOW)
    assert sorted(upstream.root.rglob("*")) == before
    done = run(upstream)
    assert done.plan == plan
    assert done.before._replace(unfinished=use.unfinished) == use


def test_a_replaced_pack_goes_after_an_hour(upstream: Upstream) -> None:
    run(upstream)
    run(upstream, NOW + KEPT - 1)
    assert len(list(replaced_packs(upstream.repository.pack_folder))) == COMMITS + 1
    done = run(upstream, NOW + KEPT)
    assert done.after.replaced.files == 0
    assert {path.suffix for path in upstream.repository.pack_folder.iterdir()} == {".pack", ".idx"}
    upstream.prove_sound()


def test_a_commit_removes_it_too(upstream: Upstream) -> None:
    run(upstream, time.time() - KEPT - 1)
    change(upstream, 100)
    assert not list(replaced_packs(upstream.repository.pack_folder))
    upstream.prove_sound()


def test_a_pack_of_the_same_name_outlives_the_one_that_was_replaced(upstream: Upstream) -> None:
    """The name is a hash of the objects: a commit that makes the same pack again needs the file."""
    run(upstream)
    folder = upstream.repository.pack_folder
    again = next(replaced_packs(folder))
    shutil.copy(again, again.with_suffix(".idx"))
    run(upstream, NOW + KEPT)
    assert again.with_suffix(".pack").exists()
    assert again.with_suffix(".idx").exists()
    assert not again.exists()
    upstream.prove_sound()


def test_a_commit_goes_on_while_packs_are_merged(upstream: Upstream) -> None:
    """A pack made of former packs replaces them afterwards."""
    repack = Repack(upstream.places.repository)
    repack.pack_loose(repack.loose())
    before = list_packs(upstream.repository.pack_folder)
    new = repack.merge(before, [])
    change(upstream, 200)
    assert new.pack.path.exists()  # a commit does not remove it as the remains of a killed run
    repack.replace(new, before, NOW)
    assert len(packs(upstream)) == 2
    upstream.prove_sound()
    assert upstream.check().commits == COMMITS + 1


def test_a_commit_is_read_while_it_is_packed(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, repack = upstream.repository, Repack(upstream.places.repository)

    def read_late(path: Path, oid: bytes) -> tuple[Kind, bytes] | None:
        repack.pack_loose(repack.loose())
        return read_loose(path, oid)

    monkeypatch.setattr("huai_server.store.repository.read_loose", read_late)
    assert repository.head() == upstream.head


def test_only_the_small_ones_are_merged(upstream: Upstream) -> None:
    run(upstream)
    [large] = packs(upstream)
    for number in range(20, 24):
        change(upstream, number)
    assert 0 < run(upstream).plan.merged < 6
    assert large in packs(upstream)
    upstream.prove_sound()


def test_a_pack_that_somebody_keeps_is_left_alone(upstream: Upstream) -> None:
    kept_pack = packs(upstream)[0]
    kept_pack.with_suffix(".keep").touch()
    done = run(upstream)
    assert done.plan.merged == COMMITS
    assert kept_pack.with_suffix(".idx").exists()
    upstream.prove_sound()


def test_what_somebodys_git_says_of_packs_goes_with_them(upstream: Upstream) -> None:
    upstream.git("multi-pack-index", "write")
    run(upstream)
    run(upstream, NOW + KEPT)
    upstream.prove_sound()


def test_what_a_killed_run_left_is_removed(upstream: Upstream) -> None:
    repository = upstream.places.repository
    (repository / "maintain").mkdir()
    left = [
        repository / "maintain" / "new.pack",
        repository / "objects" / "pack" / f"{TEMPORARY}x",
    ]
    for path in left:
        path.write_bytes(b"x" * 100)
    assert foresee(upstream.places, upstream.module.retention, now=NOW)[1].unfinished == (2, 200)
    assert run(upstream).after.unfinished == (0, 0)
    assert not any(path.exists() for path in left)


def test_a_lock_that_is_held(upstream: Upstream) -> None:
    for lock in (upstream.places.lock, upstream.places.maintaining):
        with locked(lock), pytest.raises(LockedError):
            run(upstream)
    assert run(upstream).plan.merged


def test_without_git(upstream: Upstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissingError):
        run(upstream)
    assert len(packs(upstream)) == COMMITS


def cut_index(upstream: Upstream) -> None:
    index = packs(upstream)[0].with_suffix(".idx")
    content = index.read_bytes()
    index.chmod(0o644)
    index.write_bytes(content[:1000])


def foreign_index(upstream: Upstream) -> None:
    index = packs(upstream)[0].with_suffix(".idx")
    index.chmod(0o644)
    index.write_bytes(b"\0" * 3000)


@pytest.mark.parametrize("damage", [cut_index, foreign_index])
def test_an_index_that_is_none(upstream: Upstream, damage: object) -> None:
    assert callable(damage)
    damage(upstream)
    with pytest.raises(PackIndexError):
        foresee(upstream.places, upstream.module.retention, now=NOW)
    with pytest.raises(HuaiError) as caught:
        run(upstream)
    assert caught.value.exit_code == ExitCode.UNSOUND


def test_a_damaged_pack_is_replaced_by_nothing(upstream: Upstream) -> None:
    pack = max(packs(upstream), key=lambda path: path.stat().st_size)
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(content)
    run_loose = len(Repack(upstream.places.repository).loose())
    with pytest.raises(HuaiError) as caught:
        run(upstream)
    assert caught.value.exit_code == ExitCode.UNSOUND
    assert run_loose == COMMITS
    assert len(packs(upstream)) == COMMITS + 1  # the loose objects have one
    assert pack in packs(upstream)
    assert not list(replaced_packs(upstream.repository.pack_folder))


def test_a_damaged_loose_object_stays(upstream: Upstream) -> None:
    loose = Repack(upstream.places.repository).loose()
    loose[0].chmod(0o644)
    loose[0].write_bytes(b"")
    with pytest.raises(HuaiError):
        run(upstream)
    assert Repack(upstream.places.repository).loose() == loose


def test_a_root_of_any_name(upstream: Upstream, tmp_path: Path) -> None:
    """Maintain a repository below a root whose name is not valid UTF-8."""
    odd = Upstream(tmp_path / os.fsdecode(b"caf\xe9 \xff"), upstream.tree)
    odd.commit()
    for number in range(77, 80):
        change(odd, number)
    assert run(odd).plan.merged
    odd.prove_sound()
