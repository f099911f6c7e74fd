"""Protected paths are never touched, in random trees and changes neither."""

import os
import random
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.local_trees import fingerprint
from tests.support.processes import run_program
from tests.support.upstream import ENVIRONMENT, T0, Downstream, Pair, Site, Upstream, rsync_would

PROTECT = ("/project/trace/my.host", "*.local", "/own/")


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"pool", 20)
    up.put(b"project/trace/upstream.host", b"theirs")
    up.put(b"project/trace/my.host", b"what they think of us")
    up.put(b"dists/sid/InRelease", b"pointer")
    up.put(b"gone/a", b"1")
    up.put(b"turns/a", b"1")
    up.commit()
    down = place.downstream(up, protect=PROTECT)
    (down.dest / "project/trace").mkdir(parents=True)
    write(down, "project/trace/my.host")
    write(down, "own/page.html")
    down.synced()
    return up, down


def write(down: Downstream, path: str, text: str = "ours") -> Path:
    place = down.dest / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def identity(path: Path) -> tuple[int, ...]:
    """Changes with any change to the file, its attributes and its place."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink


def test_a_protected_file_is_not_replaced(pair: Pair) -> None:
    up, down = pair
    mine = down.dest / "project/trace/my.host"
    before = identity(mine)
    up.put(b"project/trace/my.host", b"another thought of theirs", mtime=5)
    up.put(b"project/trace/upstream.host", b"newer")
    up.commit()
    assert down.synced()["summary"]["fetches"] == 1
    up.at(b"project/trace/my.host").unlink()
    up.commit()
    assert down.synced()["summary"]["deletions"] == 0
    assert down.sync("--adopt", "--delete-extraneous").code == 0
    assert (identity(mine), mine.read_text()) == (before, "ours")
    assert (down.dest / "own/page.html").exists()
    down.configure(protect=("",))  # which is not a pattern
    up.put(b"new", b"1")
    up.commit()
    tree = fingerprint(down.dest)
    assert down.sync().code == 40
    assert fingerprint(down.dest) == tree


def test_a_protected_path_is_not_damage(pair: Pair) -> None:
    _, down = pair
    assert down.verify("--content").code == 0
    # Its owner writes it again: the times of its directory change.
    (down.dest / "project/trace/my.host").unlink()
    write(down, "project/trace/my.host", "ours, later")
    write(down, "dists/sid/notes.local")
    write(down, "elsewhere/deep/notes.local")
    ended = down.verify("--content")
    assert ended.code == 0, ended
    write(down, "elsewhere/unknown", "whose?")
    ended = down.verify("--repair", "--delete-extraneous")
    assert ended.out.splitlines()[0] == "extraneous elsewhere/unknown"
    assert not (down.dest / "elsewhere/unknown").exists()
    assert (down.dest / "elsewhere/deep/notes.local").exists()


def test_a_pattern_for_directories_hides_no_damage_of_a_file(place: Site) -> None:
    up = place.upstream()
    up.put(b"own", b"good")
    up.put(b"other", b"1")
    down = place.synced_downstream(up, protect=("own/",))
    file = down.dest / "own"
    file.write_bytes(b"bad!")
    os.utime(file, ns=(T0, T0))
    assert "digest" in down.verify("--content").out
    file.unlink()
    assert "missing    own" in down.verify().out
    assert down.verify("--repair").code == 0
    assert file.read_bytes() == b"good"


def test_a_directory_that_holds_one_stays(pair: Pair) -> None:
    up, down = pair
    protected = [write(down, path) for path in ("gone/x/y.local", "turns/y.local")]
    before = [identity(path) for path in protected]
    shutil.rmtree(up.at(b"gone"))
    shutil.rmtree(up.at(b"turns"))
    up.put(b"turns", b"a file now")
    up.put(b"pool/new", b"1")
    up.commit()
    result = down.synced()
    # All else of them goes, and nothing else waits for it.
    assert result["summary"]["deletions"] == 2
    assert [identity(path) for path in protected] == before
    assert not (down.dest / "gone/a").exists()
    assert (down.dest / "pool/new").exists()
    assert down.synced()["changed"] is False


def test_what_waits_is_protected_too(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 5)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"pool/1").unlink()
    up.at(b"pool/2").unlink()
    up.commit()
    down.synced()
    down.configure(protect=("/pool/1",), delete_after="0")
    assert down.synced()["done"]["removed"] == 1
    assert (down.dest / "pool/1").exists()
    assert down.synced()["changed"] is False


@pytest.mark.parametrize("change", ["none", "deletion", "directory"])
@pytest.mark.parametrize("own", ["a", "b"])
@pytest.mark.parametrize("duplicates", ["copy", "hardlink"])
def test_what_is_protected_from_now_on_shares_no_inode(
    place: Site, duplicates: str, own: str, change: str
) -> None:
    """A change in place by the administrator reaches no other file."""
    up = place.upstream()
    up.put(b"a", b"theirs")
    for name in (b"b", b"c"):
        if duplicates == "copy":
            up.at(name).hardlink_to(up.at(b"a"))
        else:
            up.put(name, b"theirs")
    down = place.synced_downstream(up, duplicates=duplicates, delete_after="1h")
    assert (down.dest / own).stat().st_nlink == 3
    if change != "none":
        up.at(own.encode()).unlink()
        up.commit()
    if change == "deletion":
        down.synced()
    elif change == "directory":
        up.at(own.encode()).mkdir()
        up.commit()
    down.configure(protect=(f"/{own}",))
    down.synced()
    up.put(b"d", b"theirs")
    up.commit()
    down.synced()
    write(down, own)
    contents = {path.name: path.read_text() for path in down.dest.iterdir()}
    assert contents == {**dict.fromkeys("abcd", "theirs"), own: "ours"}
    assert down.verify("--content").code == 0


NAMES = ("a", "b", "own", "x.local")
PATTERNS = ("*.local", "/own", "/a/b", "/b/**/own", "own/", "a/b/")
ROUNDS = 4


def mutate(top: Path, dice: random.Random, times: int) -> None:
    """Files, directories and symlinks come, go, move, and turn into each other."""
    for _ in range(times):
        path = top.joinpath(*dice.choices(NAMES, k=dice.randint(1, 3)))
        if not path.parent.resolve().is_relative_to(top.resolve()):
            continue
        for above in reversed(path.relative_to(top).parents):
            if (top / above).is_symlink() or (top / above).is_file():
                (top / above).unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = dice.choice(("file", "file", "file", "gone", "link", "folder", "move"))
        target = top.joinpath(*dice.choices(NAMES, k=2))
        if (
            kind == "move"
            and path.is_dir()
            and target.parent.is_dir()
            and not os.path.lexists(target)
        ):
            if not target.is_relative_to(path):
                path.rename(target)
            continue
        remove(path)
        if kind == "file":
            path.write_bytes(dice.randbytes(dice.randint(1, 40)))
        elif kind == "link":
            path.symlink_to("nowhere")
        elif kind == "folder":
            path.mkdir()


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def protected(tree: Path, patterns: tuple[str, ...]) -> set[str]:
    """Return the paths that rsync leaves out of a tree by these patterns."""
    command = ["rsync", "-rl", "--list-only", "--exclude=/.~tmp~"]
    return listed([*command, f"{tree}/"]) - listed([*command, *excludes(patterns), f"{tree}/"])


def excludes(patterns: tuple[str, ...]) -> list[str]:
    return [f"--exclude={pattern}" for pattern in patterns]


def listed(command: list[str]) -> set[str]:
    done = run_program(*command, env=ENVIRONMENT, check=True)
    return {line.split(None, 4)[4].split(" -> ")[0] for line in done.stdout.splitlines()}


def identities(down: Downstream, paths: set[str]) -> dict[str, tuple[int, ...]]:
    """Return all that a change of a leaf would change; of directories, the inode."""
    values: dict[str, tuple[int, ...]] = {}
    for path in paths:
        status = os.lstat(down.dest / path)
        values[path] = (status.st_ino, 0 if stat.S_ISDIR(status.st_mode) else status.st_ctime_ns)
    return values


def left_to_do(up: Upstream, down: Downstream, patterns: tuple[str, ...]) -> set[str]:
    """The paths in which rsync would still change something."""
    options = ["-ancil", "--delete", "--exclude=/.~tmp~", *excludes(patterns)]
    # 23: a directory that holds something excluded does not make way.
    changes = rsync_would(up, down, *options, accept=(0, 23))
    lines = [line.split(None, 1) for line in changes.splitlines() if line[:2] != "ca"]
    return {path.split(" -> ")[0].rstrip("/") for _, path in lines}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_protected_stays_and_all_else_is_in_step(place: Site, seed: int) -> None:
    dice = random.Random(seed)
    patterns = tuple(dice.sample(PATTERNS, k=2))
    up = place.upstream()
    mutate(up.tree, dice, 40)
    up.commit()
    down = place.downstream(up, protect=patterns, max_delete="100%")
    mutate(down.dest, dice, 10)
    down.synced("--delete-extraneous")
    for _ in range(ROUNDS):
        mutate(up.tree, dice, 10)
        up.commit()
        mine = identities(down, protected(down.dest, patterns))
        ended = down.sync()
        assert ended.code == 0, ended
        assert identities(down, protected(down.dest, patterns)) == mine, patterns
        holders = {str(above) for path in mine for above in Path(path).parents}
        # Nor is anything put in the place of what is protected, or taken away for it.
        own = {*mine, *protected(up.tree, patterns)}
        assert left_to_do(up, down, patterns) <= holders | own, (patterns, ended)
