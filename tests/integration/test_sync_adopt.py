"""Trees that rsync made, local damage, and looking before leaping."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from huai_client.staging import boot_id, key_of
from huai_client.staging.journals import hashed
from huai_client.staging.ready_store import BOOT_ID
from huai_client.state import state as states
from huai_native._native import Blake3
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.local_trees import fingerprint
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    T0,
    Downstream,
    Pair,
    Site,
    Upstream,
    assert_equal,
    rsync_differences,
)


def rsync(up: Upstream, down: Downstream, *options: str) -> None:
    command = ["rsync", *options, f"{up.tree}/", f"{down.dest}/"]
    subprocess.run(command, env=ENVIRONMENT, timeout=SECONDS, check=True)


@pytest.fixture(name="pair")
def committed_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder", 50)
    up.put(b"file", b"content")
    up.at(b"twin").hardlink_to(up.at(b"file"))
    os.symlink("file", up.at(b"link"))
    up.commit()
    return up, place.downstream(up)


@pytest.fixture(name="synced")
def synced_pair(pair: Pair) -> Pair:
    pair[1].synced()
    return pair


def damage_three(dest: Path) -> None:
    (dest / "folder" / "7").unlink()
    (dest / "folder" / "8").write_bytes(b"something else")
    (dest / "folder" / "9").chmod(0o600)


def rewrite_one(dest: Path) -> None:
    damaged = dest / "folder" / "1"
    damaged.write_bytes(b"X" * damaged.stat().st_size)


ADOPTED: dict[str, tuple[str, Callable[[Path], None], dict[str, int]]] = {
    "nothing is fetched of a whole tree": ("-aH", lambda _: None, {"fetches": 0}),
    "only real differences are fetched": ("-aH", damage_three, {"fetches": 2}),
    "without times digests decide": ("-rlH", rewrite_one, {"fetches": 1}),
    "lost hardlinks are made again": ("-a", lambda _: None, {"fetches": 0, "links": 1}),
}


def test_a_tree_made_by_rsync_is_adopted(
    place: Site, pair: Pair, subtests: pytest.Subtests
) -> None:
    up, _ = pair
    for case, (options, damage, expected) in ADOPTED.items():
        with subtests.test(case):
            down = place.downstream(up)
            rsync(up, down, options)
            damage(down.dest)
            before = (down.dest / "file").stat().st_ino
            summary = down.synced()["summary"]
            assert summary | expected == summary
            assert options != "-aH" or (down.dest / "file").stat().st_ino == before
            assert_equal(up, down)


def test_wrong_hardlinks_are_split(place: Site) -> None:
    up = place.upstream()
    for name in (b"a", b"b", b"c", b"d"):
        up.put(name, b"same")
    up.at(b"b2").hardlink_to(up.at(b"b"))
    up.commit()
    down = place.downstream(up)
    rsync(up, down, "-aH")
    for twin in ("b", "b2", "c"):
        (down.dest / twin).unlink()
        (down.dest / twin).hardlink_to(down.dest / "a")
    down.synced()
    assert_equal(up, down)
    links = [(down.dest / name).stat().st_nlink for name in ("a", "b", "b2", "c")]
    assert links == [1, 2, 2, 1]


def test_extraneous_files_are_reported_and_stay(pair: Pair) -> None:
    up, down = pair
    rsync(up, down, "-aH")
    (down.dest / "folder" / "mine").write_text("mine")
    (down.dest / "my" / "own").mkdir(parents=True)
    ended = down.sync()
    assert ended.code == 0, ended
    assert "3 paths are in no snapshot" in ended.err
    assert "--delete-extraneous" in ended.err
    assert (down.dest / "folder" / "mine").exists()
    assert (down.dest / "my" / "own").exists()
    assert down.sync("--adopt", "--delete-extraneous").code == 0
    assert_equal(up, down)


@pytest.mark.parametrize("early", [1000, 999_999_999, 5 * 10**9])
def test_the_time_of_the_top_is_right_to_the_nanosecond(place: Site, early: int) -> None:
    """Though rsync leaves a directory whose second is right."""
    up = place.upstream()
    up.many(b"folder", 3)
    os.utime(up.tree, ns=(T0, T0))
    up.commit()
    down = place.downstream(up)
    rsync(up, down, "-a")
    os.utime(down.dest, ns=(T0, T0 - early))
    down.synced()
    assert down.dest.stat().st_mtime_ns == T0


def test_a_plan_changes_nothing(pair: Pair) -> None:
    up, down = pair
    assert ("fetch", "file") in down.plan()
    assert list(down.dest.iterdir()) == []
    assert not down.state_file.exists()
    assert down.verify().code == 47
    down.synced()
    up.put(b"new", b"1")
    up.at(b"file").unlink()
    os.symlink("/outside", up.at(b"leads-out"))
    up.commit()
    before, state = fingerprint(down.dest), down.state_file.read_bytes()
    ended = down.run("plan", down.name)
    assert ended.code == 0
    assert "fetch      new" in ended.out
    assert "1 symlink leads out of the tree, for example leads-out" in ended.err
    assert down.sync("--dry-run").out == ended.out
    assert (fingerprint(down.dest), down.state_file.read_bytes()) == (before, state)
    down.synced()
    assert_equal(up, down)


def test_repair_mends_everything(synced: Pair) -> None:
    up, down = synced
    (down.dest / "folder" / "1").unlink()
    (down.dest / "folder" / "2").unlink()
    (down.dest / "folder" / "2").mkdir()
    (down.dest / "folder" / "3").chmod(0)
    (down.dest / "link").unlink()
    (down.dest / "twin").unlink()
    (down.dest / "twin").write_bytes(b"content")
    (down.dest / "unknown").write_bytes(b"content")
    state = down.state
    ended = down.verify("--repair", "--json")
    assert ended.code == 0, ended
    assert (down.dest / "unknown").exists()
    assert down.state == state
    assert down.verify("--repair", "--delete-extraneous").code == 0
    assert_equal(up, down)


def test_repair_of_a_damaged_hardlink_group(synced: Pair) -> None:
    up, down = synced
    (down.dest / "file").write_bytes(b"CONTENT")
    os.utime(down.dest / "file", ns=(T0, T0))
    assert down.verify("--content", "--repair").code == 0
    assert_equal(up, down)


def test_repair_goes_back_to_the_applied_commit(synced: Pair) -> None:
    up, down = synced
    applied = down.state.applied
    up.put(b"newer", b"newer")
    up.commit()
    (down.dest / "link").unlink()
    assert down.verify("--repair").code == 0
    assert down.state.applied == applied
    assert not (down.dest / "newer").exists()
    down.synced()
    assert_equal(up, down)


def test_an_extraneous_file_where_a_file_comes(synced: Pair, tmp_path: Path) -> None:
    up, down = synced
    (down.dest / "new").symlink_to(tmp_path)
    (down.dest / "other").write_text("local")
    up.put(b"new/file", b"1")
    up.put(b"other", b"upstream's")
    up.commit()
    down.synced()
    assert list(tmp_path.iterdir()) == []
    assert rsync_differences(up, down) == ""
    assert_equal(up, down)


def test_quiet_prints_nothing_about_symlinks_that_lead_out(place: Site, tmp_path: Path) -> None:
    """The log file and the events have it; a timer's mail has not."""
    up = place.upstream()
    up.at(b"leads-out").symlink_to("/etc")
    up.commit()
    log = tmp_path / "log"
    done = place.downstream(up).sync("--quiet", "--log-file", str(log))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "1 symlink leads out of the tree" in log.read_text(encoding="utf-8")
    warnings = place.downstream(up).sync("--quiet", "--json").events("warning")
    assert ["leads out" in warning["message"] for warning in warnings] == [True]


def test_nothing_that_an_upstream_put_into_the_staging_area_is_an_order(pair: Pair) -> None:
    """Such as a journal of an older version, which names a file outside."""
    up, down = pair
    victim, name = down.dest.parent / "victim", hashed(b"../victim").decode()
    victim.write_bytes(b"precious")
    area = up.tree / ".~tmp~/huai"
    (area / "patches").mkdir(parents=True)
    (area / "patches" / name).write_bytes(b"planted")
    journal = {"path": b"../victim", "ranges": [(0, 7)]}
    (area / "patches" / f"{name}.journal").write_bytes(msgspec.msgpack.encode(journal))
    os.mkfifo(area / "boot")
    (area / "partial").mkdir()
    os.mkfifo(area / "partial" / hashed(b"folder/1").decode())
    rsync(up, down, "-aH")
    assert (down.dest / ".~tmp~/huai/boot").is_fifo()
    (down.dest / "folder/1").unlink()
    down.synced()
    assert victim.read_bytes() == b"precious"
    assert not (down.dest / ".~tmp~").exists()
    assert (down.dest / "folder/1").read_bytes() == up.at(b"folder/1").read_bytes()


def victim(planted: Path) -> Path:
    return next(above.parent for above in planted.parents if above.name == ".~tmp~") / "victim"


PLANTS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "symlink": lambda path: path.symlink_to(victim(path)),
    "directory": Path.mkdir,
    "file": lambda path: path.write_bytes(b"planted"),
    "hardlink": lambda path: path.hardlink_to(victim(path)),
}
PLANTED = (b"large", b"folder/1")


def with_digest(up: Upstream, file: File) -> File:
    return file._replace(digest=Blake3(up.at(file.path).read_bytes()).digest())


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("kind", PLANTS)
def test_whatever_an_upstream_put_into_the_staging_area_is_cleared(
    place: Site, kind: str, *, inner: bool
) -> None:
    up = place.upstream(block_index=1 << 18)
    up.many(b"folder", 5)
    up.put(b"victim", b"precious")
    up.put(b"large", os.urandom(1 << 20))
    up.commit()
    area, top = up.tree / ".~tmp~/huai", up.tree.stat()
    area.mkdir(parents=True)
    files = [File(RelPath(path), up.at(path).stat().st_size, T0, 0o644) for path in PLANTED]
    names = ["boot", "lock", "ready", "unverified", "incoming", "partial", "patches"]
    if inner:
        names = [f"incoming/{name}" for name in ("0", "1", "9" * 200, "x")]
        for file in files:
            name, key = hashed(file.path).decode(), key_of(with_digest(up, file))
            names += [f"partial/{name}", f"patches/{name}", f"ready/{key}", f"unverified/{key}"]
            names.append(f"incoming/7/{os.fsdecode(file.path)}")
    for name in names:
        (area / name).parent.mkdir(parents=True, exist_ok=True)
        PLANTS[kind](area / name)
    os.utime(up.tree, ns=(top.st_atime_ns, top.st_mtime_ns))
    down = place.downstream(up)
    rsync(up, down, "-aH", "--exclude=/large", "--exclude=/folder/1")
    assert down.sync().code == 0
    for tree in (up.tree, down.dest):
        assert (tree / "victim").read_bytes() == b"precious"
    assert not (down.dest / ".~tmp~").exists()
    assert_equal(up, down)


@pytest.mark.parametrize("digest", ["now", "off"])
def test_a_file_that_claims_to_be_verified_is_not_believed(place: Site, digest: str) -> None:
    """Not even from who knows how this boot of the machine is called."""
    up = place.upstream(digest=digest)
    up.many(b"folder", 5)
    up.commit()
    file = File(RelPath(b"folder/1"), 10, T0, 0o644)
    if digest == "now":
        file = with_digest(up, file)
    down = place.downstream(up)
    for boot in (BOOT_ID.read_bytes().strip(), boot_id()):
        area = down.dest / ".~tmp~/huai"
        (area / "ready").mkdir(parents=True, mode=0o700)
        (area.parent).chmod(0o700)
        (area / "boot").write_bytes(boot)
        for planted in (area / "ready" / key_of(file), area / "incoming/1/folder/1"):
            planted.parent.mkdir(parents=True, exist_ok=True)
            planted.write_bytes(b"planted...")
            os.utime(planted, ns=(T0, T0))
        assert down.sync("--adopt").code == 0
        assert_equal(up, down)
        (down.dest / "folder/1").unlink()


def rewrite(up: Upstream, *paths: bytes) -> None:
    """Give files other content, and the same size and time."""
    for path in paths:
        status = up.at(path).stat()
        up.at(path).write_bytes(os.urandom(status.st_size))
        os.utime(up.at(path), ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("option", ["--adopt", "after a mode changed", "after an attempt was lost"])
def test_adopting_fetches_what_the_commit_says_is_rewritten(synced: Pair, option: str) -> None:
    up, down = synced
    rewrite(up, b"folder/3", b"file")
    up.commit()
    if option == "after a mode changed":
        (down.dest / "folder" / "3").chmod(0o600)
        (down.dest / "file").chmod(0o600)
    if option == "after an attempt was lost":
        states.save(down.state_file, replace(down.state, attempted=("1" * 40,)))
    planned = {path for what, path in down.plan("--adopt") if what in ("fetch", "reuse")}
    assert planned == {"file", "folder/3"}
    down.synced("--adopt")
    assert_equal(up, down)
    assert down.verify("--content").code == 0


def test_adopting_fetches_what_is_rewritten_in_a_directory_that_moved(pair: Pair) -> None:
    up, down = pair
    up.many(b"other", 50)
    up.commit()
    down.synced()
    for old, new in ((b"folder", b"aside"), (b"other", b"folder"), (b"aside", b"other")):
        up.at(old).rename(up.at(new))
    up.commit()
    down.synced("--adopt")
    assert_equal(up, down)
    assert down.verify("--content").code == 0


def test_only_an_adopted_tree_without_a_commit_is_said_to_go_by_size_and_time(
    place: Site, pair: Pair
) -> None:
    up, down = pair
    assert "size and time" not in place.downstream(up).sync().err
    rsync(up, down, "-aH")
    (down.dest / "folder" / "3").unlink()
    ended = down.sync()
    assert ended.code == 0
    assert "53 paths that are here are compared by size and time, as rsync does" in ended.err
    for options in ((), ("--adopt",)):
        assert "size and time" not in down.sync(*options).err
