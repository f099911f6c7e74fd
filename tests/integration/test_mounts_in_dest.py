"""A mount inside of DEST, a bind mount of the same file system too: nothing in it is touched."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mounting import needs_mounts
from tests.support.upstream import Pair, Site, site

pytestmark = needs_mounts
SECONDS = 30


@pytest.fixture
def place(short_path: Path) -> Iterator[Site]:
    with site(short_path) as place:
        yield place


@pytest.fixture
def pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder/deep", 20)
    up.put(b"top", b"1")
    return up, place.synced_downstream(up)


@pytest.fixture(params=["bind", "memory"])
def mount(request: pytest.FixtureRequest, short_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Mount a folder, empty at first, at a path."""
    points: list[Path] = []

    def do(path: Path) -> Path:
        source = short_path / "elsewhere"
        source.mkdir()
        kinds = {"bind": ["--bind", str(source)], "memory": ["-t", "tmpfs", "none"]}
        command = ["mount", *kinds[request.param], str(path)]
        subprocess.run(command, check=True, timeout=SECONDS)
        points.append(path)
        return path

    yield do
    for path in points:
        subprocess.run(["umount", "--lazy", str(path)], check=True, timeout=SECONDS)


def test_extraneous_files_in_it_stay(pair: Pair, mount: Callable[[Path], Path]) -> None:
    _, down = pair
    (down.dest / "mine").mkdir()
    mounted = mount(down.dest / "mine")
    (mounted / "below").mkdir()
    (mounted / "below/file").write_text("mine")
    ended = down.sync("--adopt", "--delete-extraneous")
    assert ended.code == 52
    assert "mine: on another file system or in a bind mount" in ended.err
    assert (mounted / "below/file").read_text() == "mine"


def test_deletions_of_the_upstream_do_not_enter_it(
    pair: Pair, mount: Callable[[Path], Path]
) -> None:
    up, down = pair
    names = sorted(path.name for path in (down.dest / "folder/deep").iterdir())
    mounted = mount(down.dest / "folder")
    (mounted / "deep").mkdir()
    for name in names:
        (mounted / "deep" / name).write_text("mine")
    for name in names[:5]:
        up.at(b"folder/deep/" + name.encode()).unlink()
    up.put(b"top", b"22")
    up.commit()
    ended = down.sync()
    assert ended.code == 52
    assert "folder/deep: is on another file system than DEST or in a bind mount" in ended.err
    assert sorted(path.name for path in (mounted / "deep").iterdir()) == names
    assert {path.read_text() for path in (mounted / "deep").iterdir()} == {"mine"}
