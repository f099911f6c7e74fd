"""Changes that need no content: touched, renamed, moved, copied; beside `rsync -a --delete`.

Each has trees of its own, of real data, one after the other, so that three copies of the
largest have to fit on the disk, and a fourth that rsync makes; with less room they are smaller, and
the figure says so.  Ours is the whole `huai-client sync`; the upstream's own update and its commit
are not part of it.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

from tests.bench.figures import Figure, Goal, show
from tests.bench.programs import Program, serving
from tests.bench.spending import spend
from tests.bench.stand import Stand, say
from tests.support.rsyncd import rsync_daemon

GIB = 1 << 30
_BLOCK = 8 << 20
_COPIES = 5
"""Of the tree; one more than there are, for whatever else needs room."""
_SMALL_FILES = 10_000
_RELEASE_FILES = 2000
_AT_ONCE = Goal(1.0, "< 1 s")


class Case(NamedTuple):
    """One kind of change."""

    what: str
    make: Callable[[Path], None]
    """Fills an empty tree."""
    change: Callable[[Path, int], None]
    """Changes it; told how often that was done before."""
    goal: Goal | None = None


def figures(stand: Stand) -> Iterator[Figure]:
    """The time of each, medians."""
    large = _size(stand.folder, 8 * GIB)
    for case in _cases(large):
        with _Ground(stand.folder / "reuse", case) as ground:
            ours: list[float] = []
            theirs: list[float] = []
            for number in range(stand.rounds):
                ground.change(number)
                runs = [(ours, ground.huai), (theirs, ground.rsync)]
                for times, run in runs if number % 2 == 0 else reversed(runs):
                    os.sync()
                    stand.rest()
                    times.append(spend(run).wall)
                ground.compare()
            yield Figure(
                f"sync, {case.what}",
                median(ours),
                "s",
                "rsync -a --delete",
                median(theirs),
                case.goal,
            )


def _cases(large: int) -> Iterator[Case]:
    for size in (min(GIB, large), large):
        yield Case(
            f"a file of {show(size, 'B')} touched",
            partial(_one_file, size),
            lambda tree, number: os.utime(tree / "file", ns=(0, 10**18 + number)),
            _AT_ONCE,
        )
    yield Case(
        f"a folder of {show(large, 'B')} renamed",
        lambda tree: _folder(tree / "folder-0", 256, large // 256),
        lambda tree, number: _rename(tree / f"folder-{number}", tree / f"folder-{number + 1}"),
        _AT_ONCE,
    )
    yield Case(
        f"{_SMALL_FILES:,} files of 4 KiB moved to another folder",
        lambda tree: _folder(tree / "0", _SMALL_FILES, 4096),
        _move_files,
    )
    release = min(GIB, large)
    yield Case(
        f"a release of {_RELEASE_FILES:,} files, {show(release, 'B')}, copied",
        lambda tree: _folder(tree / "release-0", _RELEASE_FILES, release // _RELEASE_FILES),
        _copy_release,
    )


def _size(folder: Path, wanted: int) -> int:
    return min(wanted, shutil.disk_usage(folder).free // _COPIES // _BLOCK * _BLOCK)


def _write(path: Path, size: int) -> None:
    """Real data, no two blocks alike."""
    block = bytearray(os.urandom(min(size, _BLOCK)))
    with path.open("wb") as file:
        for number in range(-(-size // _BLOCK)):
            block[:8] = number.to_bytes(8)
            file.write(block[: min(_BLOCK, size - number * _BLOCK)])
    os.utime(path, ns=(0, 10**18 - 10**9))


def _one_file(size: int, tree: Path) -> None:
    _write(tree / "file", size)


def _folder(folder: Path, files: int, size: int) -> None:
    folder.mkdir()
    for number in range(files):
        _write(folder / f"{number}", size)


def _rename(old: Path, new: Path) -> None:
    old.rename(new)


def _move_files(tree: Path, number: int) -> None:
    """Into a folder that has a file already: no folder is renamed."""
    new = tree / f"{number + 1}"
    _folder(new, 1, 10)
    (new / "0").rename(new / "own")
    for each in (tree / f"{number}").iterdir():
        if each.name != "own":
            each.rename(new / each.name)


def _copy_release(tree: Path, number: int) -> None:
    subprocess.run(
        ["cp", "-a", str(tree / "release-0"), str(tree / f"release-{number + 1}")], check=True
    )


class _Ground:
    """An upstream and two downstreams of one tree; everything is removed at the end."""

    def __init__(self, folder: Path, case: Case) -> None:
        self._folder = folder
        self._case = case
        self._tree = folder / "tree"
        self._server = Program("huai-server", folder / "server")
        self._client = Program("huai-client", folder / "client")
        self._closing = ExitStack()
        self._daemon = ""

    def __enter__(self) -> Self:
        say(f"making {self._case.what}")
        self._tree.mkdir(parents=True)
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._case.make(self._tree)
        for name in ("ours", "theirs"):
            copy = ["cp", "-a", str(self._tree), str(self._folder / name)]
            subprocess.run(copy, check=True)
        self._server.run("add", "reuse", self._tree)
        self._server.run("commit", "reuse")
        port = self._closing.enter_context(serving(self._server))
        url = self._closing.enter_context(rsync_daemon({"tree": self._tree}))
        self._daemon = f"{url}/tree"
        where = (f"http://127.0.0.1:{port}", self._folder / "ours")
        self._client.run("add", "reuse", *where, "--content-url", self._daemon)
        self._client.run("sync", "reuse", "--quiet")
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def change(self, number: int) -> None:
        """Once more, and commit it."""
        self._case.change(self._tree, number)
        self._server.run("commit", "reuse")

    @property
    def huai(self) -> list[str]:
        """Our command."""
        return self._client.command("sync", "reuse", "--quiet", "--max-delete", "100%")

    @property
    def rsync(self) -> list[str]:
        """Theirs."""
        return ["rsync", "-a", "--delete", f"{self._daemon}/", f"{self._folder / 'theirs'}/"]

    def compare(self) -> None:
        """A figure of what was not done right means nothing."""
        trees = [f"{self._folder / name}/" for name in ("theirs", "ours")]
        command = ["rsync", "-ani", "--delete", "--exclude=.~tmp~", *trees]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        if done.stdout:
            raise RuntimeError(f"the trees differ: {done.stdout[:500]}")
