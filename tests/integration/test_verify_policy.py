"""`verify` knows what a tree lacks, has or keeps on purpose."""

import os

import pytest

from tests.support.upstream import T0, Downstream, Site, Upstream
from tests.support.verifying import cut, differing_paths, standing

FILES = 150


@pytest.fixture(name="up")
def committed(place: Site) -> Upstream:
    up = place.upstream()
    for folder in (b"a", b"b"):
        up.many(folder, FILES)
    up.put(b"one", b"the same content")
    up.put(b"two", b"the same content")
    up.at(b"out").symlink_to("/elsewhere")
    up.commit()
    return up


def differences(down: Downstream, *options: str) -> list[str]:
    """Return what differs, except the time of the top directory."""
    return [path for path in differing_paths(down.verify("--json", *options)) if path != "."]


def test_a_filter(place: Site, up: Upstream) -> None:
    down = place.downstream(up, filter=("- /b/", "- /a/7"))
    down.synced()
    assert differences(down, "--content") == []
    assert standing(down)["parts"] == 2
    (down.dest / "b").mkdir()
    (down.dest / "b" / "unknown").touch()
    (down.dest / "a" / "7").touch()
    assert differences(down) == ["a", "a/7", "b", "b/unknown"]
    assert differences(down, "--path", "b") == ["b", "b/unknown"]
    assert differences(down, "--sample", "100%") == []
    assert down.verify("--repair", "--delete-extraneous").code == 0
    down.configure(filter=())
    down.synced()
    assert standing(down)["parts"] == 3
    assert differences(down, "--content") == []
    assert standing(down)["content"]["never"] == 0
    down.configure(filter=("- /a/",))
    down.synced()
    assert standing(down)["parts"] == 2
    assert differences(down) == []


def test_what_is_protected(place: Site, up: Upstream) -> None:
    down = place.downstream(up, protect=("/a/7", "*.local", "/b/"))
    down.synced()
    cut(down, "a/8")
    (down.dest / "a" / "7").write_bytes(b"mine")
    (down.dest / "a" / "x.local").write_bytes(b"mine")
    (down.dest / "b").mkdir(exist_ok=True)
    (down.dest / "b" / "0").write_bytes(b"mine")
    assert differences(down, "--content") == ["a/8"]
    assert differences(down, "--content", "--sample", "100%") == ["a/8"]
    assert down.verify("--repair", "--delete-extraneous").code == 0
    assert (down.dest / "a" / "x.local").read_bytes() == b"mine"
    assert (down.dest / "a" / "7").read_bytes() == b"mine"
    assert standing(down)["damaged"] == 0


def test_symlinks_that_are_left_out(place: Site, up: Upstream) -> None:
    down = place.downstream(up, safe_links=True)
    down.synced()
    assert not (down.dest / "out").is_symlink()
    assert differences(down, "--content") == []
    (down.dest / "unknown").symlink_to("/elsewhere")
    assert differences(down) == ["unknown"]


def test_duplicates_that_share_an_inode(place: Site, up: Upstream) -> None:
    down = place.downstream(up, duplicates="hardlink")
    down.synced()
    (down.dest / "two").unlink()
    os.link(down.dest / "one", down.dest / "two")
    os.utime(down.dest, ns=(T0, up.tree.stat().st_mtime_ns))
    assert differences(down, "--content") == []
    down.configure(duplicates="copy")
    assert len(differences(down, "--content")) == 1


def test_deletions_that_wait(place: Site, up: Upstream) -> None:
    down = place.downstream(up, delete_after="1h")
    down.synced()
    up.at(b"a/7").unlink()
    up.commit()
    down.synced()
    assert (down.dest / "a" / "7").exists()
    assert differences(down, "--content") == []


def test_after_an_undo(place: Site, up: Upstream) -> None:
    down = place.downstream(up, trash="1d")
    down.synced()
    assert down.verify("--content").code == 0
    up.put(b"a/7", b"newer")
    up.commit()
    down.synced()
    assert standing(down)["content"]["changed"] == 1
    assert down.run("undo", down.name).code == 0
    assert differences(down, "--content") == []
    assert standing(down)["current"] is True
    assert standing(down)["content"]["changed"] == 0
