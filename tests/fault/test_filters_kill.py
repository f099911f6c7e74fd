"""A sync under a changed filter that was killed anywhere is finished by the next one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fault.cut_sync import cut, cut_at
from tests.fault.sampling import CUTS, LONG
from tests.support.partial_mirrors import RELEASES, assert_selected, grown
from tests.support.upstream import SECONDS, Downstream, Site, Upstream

IMAGES = ("- /dists/", "- /pool/?", "- /images/link")


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> tuple[Upstream, Downstream]:
    up = grown(place)
    down = place.downstream(up, filter=RELEASES, content_urls=(str(up.tree),), max_delete="100%")
    down.synced()
    return up, down


def copy_of(down: Downstream, folder: Path, rules: tuple[str, ...] = IMAGES) -> Downstream:
    folder.mkdir()
    for each in ("dest", "root"):
        source, target = getattr(down, each), folder / each
        subprocess.run(["cp", "-a", source, target], check=True, timeout=SECONDS)
    copy = Downstream(down.name, folder / "dest", folder / "root")
    copy.configure(dest=str(copy.dest), filter=rules)
    return copy


@pytest.mark.slow
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("then", [IMAGES, RELEASES, ()])
@pytest.mark.parametrize("newer", [False, True])
def test_a_kill_at_many_points(
    pair: tuple[Upstream, Downstream], tmp_path: Path, then: tuple[str, ...], *, newer: bool
) -> None:
    """Cut on the way to another filter; then that one, the one before, or none."""
    up, before = pair
    if newer:
        up.put(b"images/one.txt", b"another")
        up.at(b"dists/stable/main/3").unlink()
        up.commit()
    whole = cut(copy_of(before, tmp_path / "whole"), 0)
    assert not whole.killed
    total = whole.passed
    assert total > 40, "the cuts miss the run"
    step = max(1, total // (CUTS // 2))
    for point in range(1 + (len(then) + 3 * newer) % step, total + 1, step):
        folder = tmp_path / str(point)
        down = copy_of(before, folder)
        cut_at(down, point, total)
        down.configure(filter=then)
        down.synced()
        assert_selected(up, down, then)
        assert down.state.attempted == ()
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_kill_among_deletions_that_waited(
    pair: tuple[Upstream, Downstream], tmp_path: Path
) -> None:
    """The directories they were in get their times back, though no snapshot differs there."""
    up, before = pair
    old = "- /pool/old/?"
    before.configure(delete_after="1h", filter=(old, *RELEASES))
    assert before.synced()["delayed"] == 5
    before.configure(delete_after="0")
    rules = (old, "- /images/one.txt", *RELEASES)
    whole = cut(copy_of(before, tmp_path / "whole", rules), 0)
    for point in range(1, whole.passed + 1, max(1, whole.passed // (2 * CUTS))):
        down = copy_of(before, tmp_path / str(point), rules)
        cut_at(down, point, whole.passed)
        down.synced()
        assert_selected(up, down, rules)
