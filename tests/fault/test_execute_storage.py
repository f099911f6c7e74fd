"""A plan on a disk that is full, read-only or ends where another begins; on an older kernel."""

import errno
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Difference, DifferenceKind, Remove
from huai_client.plan.operations import Plan, Stage
from huai_client.publish.executor import execute
from huai_client.tree import DestinationError, StorageError, Tree
from huai_schema.errors import ExitCode
from tests.fault.killing import Ground
from tests.fault.scenarios.publishing import Changing
from tests.support.comparing import verify
from tests.support.local_trees import Staged, at, directory, file, symlink
from tests.support.mounting import needs_mounts
from tests.support.system_calls import supervise


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=30)


@pytest.fixture
def small_disk(short_path: Path) -> Iterator[Path]:
    """A file system for a few names only."""
    disk = short_path / "disk"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m,nr_inodes=12,mode=755", "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


@needs_mounts
def test_a_full_disk_stops_at_once_and_deletes_nothing(small_disk: Path) -> None:
    (small_disk / "gone").touch()
    plan = Plan(
        clear=[],
        make=[at(b"%02d" % number) for number in range(20)],
        moves=[],
        stages=[Stage("payload", symlinks=[symlink(b"latest")])],
        removals=[Remove(at(b"gone"), directory=False)],
        directories=[directory(b"01", mode=0o511), directory(b"00", mode=0o500), directory(b"")],
    )
    steps: list[str] = []
    with Tree(small_disk) as tree, pytest.raises(StorageError, match="No space left") as caught:
        execute(plan, tree, Staged(small_disk), lambda kind, _: steps.append(str(kind)))
    assert caught.value.exit_code == ExitCode.FILE_IO
    assert "free some space" in caught.value.hint
    assert set(steps) == {"make", "directory"}
    assert 1 < steps.count("make") < 20
    assert (small_disk / "gone").exists()
    # Attributes take no space: what was made has its final ones.
    assert stat.S_IMODE((small_disk / "00").stat().st_mode) == 0o500


@needs_mounts
def test_a_disk_that_became_read_only(small_disk: Path) -> None:
    (small_disk / "a").touch()
    with Tree(small_disk) as tree:
        staged = Staged(small_disk)([file(b"a", 50)])
        mount("-o", "remount,ro", str(small_disk))
        stage = Stage("payload", fetches=[file(b"a", 50)])
        with pytest.raises(StorageError, match="Read-only") as caught:
            execute(Plan([], [], [], [stage], [], []), tree, lambda _: staged, lambda *_: None)
    assert "remount" in caught.value.hint
    assert (small_disk / "a").stat().st_size == 0


@needs_mounts
def test_a_dest_on_a_read_only_disk_is_refused(small_disk: Path) -> None:
    (small_disk / "dest").mkdir()
    mount("-o", "remount,ro", str(small_disk))
    with pytest.raises(DestinationError, match="read-only") as caught:
        Tree(small_disk / "dest")
    assert str(small_disk) in caught.value.hint


@needs_mounts
def test_another_file_system_inside_is_not_entered(small_disk: Path) -> None:
    dest = small_disk.parent
    (small_disk / "f").touch()
    with Tree(small_disk) as tree:
        assert tree.settle_directories([directory(b"")]).failure is None
    with Tree(dest) as tree:
        assert tree.settle_directories([directory(b"")]).failure is None
        refused = tree.settle_directories([directory(b"disk")]).failure
        assert "another file system" in str(refused)
        entries = (directory(b""), directory(b"disk"), file(b"disk/f"), file(b"disk/g"))
        findings = list(verify(tree, entries, content=False))
    reason = "on another file system or in a bind mount, which is not entered"
    assert findings == [Difference(at(b"disk"), DifferenceKind.UNREADABLE, reason=reason)]


@needs_mounts
def test_content_cannot_be_renamed_to_another_file_system(small_disk: Path) -> None:
    dest = small_disk.parent
    stage = Stage("payload", fetches=[file(b"disk/f"), file(b"g")])
    with Tree(dest) as tree:
        report = execute(Plan([], [], [], [stage], [], []), tree, Staged(dest), lambda *_: None)
    assert [problem.path for problem in report.problems] == [b"disk/f"]
    assert "another file system" in report.problems[0].reason
    assert report.counts.published == 1


@pytest.mark.parametrize("lacking", ["open beneath", "rename by flags"])
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_without_a_call(ground: Ground, lacking: str, number: int) -> None:
    if (lacking, number) == ("rename by flags", errno.EPERM):
        number = errno.EINVAL  # a file system without the flag
    scene = Changing(ground)
    outcome = supervise((lacking,), scene.run, lambda _: number)
    assert outcome.calls
    assert outcome.result == "done"
    assert scene.differing() == []
