"""A DEST to which names that differ by case are one is refused before anything is changed."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from huai_client.state.state import save
from tests.support.upstream import Site


def _plant(dest: Path) -> None:
    """Let the probe find what it would on such a file system."""
    probes = dest / ".~tmp~" / "huai-probe"
    for folder in (probes.parent, probes):
        folder.mkdir(mode=0o700)
    (probes / "case").symlink_to("Case")


@pytest.fixture(name="fold")
def folding_file_system(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """A function that lets a folder fold case: as an ext4 that does, where the machine can."""
    mounted: list[Path] = []

    def fold(dest: Path) -> None:
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(16 << 20)
        make = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "casefold", str(image)]
        for command in (make, ["mount", "-o", "loop", str(image), str(dest)]):
            done = subprocess.run(command, check=False, capture_output=True, timeout=60)
            if done.returncode:
                _plant(dest)
                return
        mounted.append(dest)
        (dest / "lost+found").rmdir()
        subprocess.run(["chattr", "+F", str(dest)], check=True, timeout=60)

    yield fold
    for dest in mounted:
        subprocess.run(["umount", "--lazy", str(dest)], check=True, timeout=60)


def test_a_first_sync_is_refused(place: Site, fold: Callable[[Path], None]) -> None:
    up = place.upstream()
    up.put(b"Readme", b"text")
    up.commit()
    down = place.downstream(up)
    fold(down.dest)
    ended = down.sync()
    assert (ended.code, "upper and lower case are the same" in ended.err) == (52, True), ended
    assert not (down.dest / "Readme").exists()


def test_a_tree_of_an_earlier_version_keeps_what_it_has(
    place: Site, fold: Callable[[Path], None]
) -> None:
    up = place.upstream()
    up.put(b"Readme", b"text")
    down = place.synced_downstream(up)
    assert down.state.device == down.dest.stat().st_dev
    save(down.state_file, replace(down.state, device=0))
    fold(down.dest)
    (down.dest / "Readme").write_bytes(b"text")
    up.at(b"Readme").rename(up.at(b"README"))
    up.commit()
    assert down.sync().code == 52
    assert (down.dest / "Readme").exists()
