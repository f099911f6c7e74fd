"""Random trees, changes and own files: what is protected stays unchanged, all else is in step.

rsync with the same patterns as excludes is the oracle.
"""

import os
import random
import shutil
import stat
from pathlib import Path

import pytest

from tests.support.processes import run_program
from tests.support.upstream import ENVIRONMENT, Downstream, Site, Upstream, rsync_would

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
