"""Real file systems that lack room, rights or abilities, and kernels that refuse."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.config.modes import Modes
from huai_client.inspect.doctor import destination, features, machine
from huai_client.inspect.doctor.finding import Finding, Result
from huai_client.inspect.doctor.run_checks import Check, run_checks
from huai_client.transfer.rsync.landlock import version
from huai_schema.errors import ExitCode
from tests.support.mounting import needs_mounts
from tests.support.system_calls import Call, supervise
from tests.support.unprivileged import run_unprivileged


def mount(disk: Path, *arguments: str) -> None:
    subprocess.run(["mount", *arguments, str(disk)], check=True, timeout=30)


@pytest.fixture(name="disk")
def mount_point(short_path: Path) -> Iterator[Path]:
    """A folder that the test mounts something on."""
    disk = short_path / "disk"
    disk.mkdir()
    yield disk
    if disk.is_mount():
        subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


def mirror_of(dest: Path) -> Mirror:
    module = Module(url="http://127.0.0.1:9", dest=str(dest))
    return Mirror.of(dest.parent / "root", "m", module)


def examined(check: Callable[[Mirror], Iterator[Finding]], dest: Path) -> list[Finding]:
    checks = [Check("check", "", check)]
    return [each.finding for each in run_checks(checks, mirror_of(dest))]


# Room and rights


@pytest.mark.parametrize(
    ("modes", "option", "result"),
    [
        (Modes.EXACT, "suid", Result.WARN),
        (Modes.EXACT, "nosuid", Result.OK),
        (Modes.SAFE, "suid", Result.OK),
    ],
)
@needs_mounts
def test_set_id_programs_are_warned_of(
    disk: Path, modes: Modes, option: str, result: Result
) -> None:
    mount(disk, "-t", "tmpfs", "-o", option, "tmpfs")
    module = Module(url="http://127.0.0.1:9", dest=str(disk), modes=modes)
    mirror = Mirror.of(disk.parent / "root", "m", module)
    assert [each.result for each in destination.set_id(mirror)] == [result]


def test_it_says_whether_rsync_is_confined() -> None:
    (found,) = machine.confinement(Path("/"))
    assert (found.result is Result.OK) == (version() > 0)
    assert "Landlock" in found.message


@needs_mounts
def test_a_disk_without_room(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=20m,nr_inodes=1000", "none")
    assert [each.result for each in examined(destination.space, disk)] == [Result.OK, Result.OK]
    (disk / "big").write_bytes(bytes(8 << 20))
    bytes_left, inodes_left = examined(destination.space, disk)
    assert (bytes_left.result, bytes_left.code) == (Result.FAIL, ExitCode.NO_SPACE)
    assert inodes_left.result is Result.OK
    assert next(machine.root_space(disk)).result is Result.FAIL


@needs_mounts
def test_a_disk_that_is_nearly_full(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=600m,nr_inodes=1000", "none")
    with (disk / "big").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 575 << 20)
    assert examined(destination.space, disk)[0].result is Result.WARN


@needs_mounts
def test_a_disk_without_inodes(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=20m,nr_inodes=99", "none")
    assert examined(destination.space, disk)[1].code == ExitCode.NO_SPACE


@needs_mounts
def test_a_disk_that_is_read_only(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "ro", "none")
    (found,) = examined(destination.destination, disk)
    assert (found.result, found.code) == (Result.FAIL, ExitCode.DESTINATION)
    assert "read-only" in found.message
    (found,) = machine.root(disk)
    assert (found.result, found.code) == (Result.FAIL, ExitCode.FILE_IO)


def _as_somebody_else(folder: Path) -> None:
    root = folder / "root"
    (root / "modules" / "m").mkdir(parents=True)
    (found,) = machine.root(root)
    assert found.result is Result.OK
    state = root / "modules" / "m" / "state.json"
    state.touch()
    state.chmod(0o400)
    (found,) = machine.root(root)
    assert found.result is Result.FAIL
    assert "state.json" in found.message
    (found,) = machine.root(Path("/etc"))
    assert found.result is Result.FAIL
    (found,) = examined(destination.destination, Path("/etc"))
    assert found.code == ExitCode.DESTINATION


def test_state_and_trees_of_others(short_path: Path) -> None:
    run_unprivileged(_as_somebody_else, short_path)


@needs_mounts
def test_a_root_that_is_somebody_elses(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    (found,) = machine.root(tmp_path)
    assert found.result is Result.WARN


# Abilities


def refused(probe: Callable[[Path], Finding], folder: Path, call: str, answer: int) -> Finding:
    """What `probe` finds where the kernel answers `call` with an error, every time."""

    def work() -> tuple[str, str, str, int]:
        result, message, fix, code = probe(folder)
        return str(result), message, fix, int(code)

    outcome = supervise((call,), work, lambda _: answer)
    assert outcome.calls
    assert isinstance(outcome.result, tuple)
    result, message, fix, code = outcome.result
    return Finding(Result(result), message, fix, next(each for each in ExitCode if each == code))


@pytest.mark.parametrize(
    ("probe", "call", "answer", "result"),
    [
        (features.hardlinks, "link", errno.EPERM, Result.FAIL),
        (features.modes, "chmod", errno.EPERM, Result.FAIL),
        (features.noreplace, "rename", errno.EINVAL, Result.WARN),
        (features.noreplace, "rename", errno.ENOSYS, Result.WARN),
    ],
)
def test_what_the_kernel_refuses(
    tmp_path: Path, probe: Callable[[Path], Finding], call: str, answer: int, result: Result
) -> None:
    found = refused(probe, tmp_path, call, answer)
    assert found.result is result
    assert found.fix
    assert found.code == (ExitCode.DESTINATION if result is Result.FAIL else ExitCode.OK)


@needs_mounts
def test_times_that_are_kept_to_the_second(disk: Path, short_path: Path) -> None:
    """As on an old ext3, whose inodes have no room for more."""
    image = short_path / "image"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    make = ["mke2fs", "-q", "-F", "-t", "ext2", "-I", "128", str(image)]
    subprocess.run(make, check=True, timeout=30, capture_output=True)
    mount(disk, "-o", "loop", str(image))
    found = features.times(disk)
    assert (found.result, found.code) == (Result.FAIL, ExitCode.DESTINATION)
    assert "123,456,789 ns off" in found.message
    # And the whole check says the same, and tidies up.
    (found,) = examined(destination.feature(features.times), disk)
    assert found.result is Result.FAIL
    assert sorted(os.listdir(disk)) == ["lost+found", "timed", "timed-folder", "timed-link"]


def test_names_that_are_the_same_in_upper_and_lower_case(tmp_path: Path) -> None:
    (tmp_path / "case").symlink_to("Case")  # one name leads to the other's file
    found = features.any_names(tmp_path)
    assert (found.result, found.code) == (Result.FAIL, ExitCode.DESTINATION)


def test_a_file_system_that_wants_utf_8(tmp_path: Path) -> None:
    def decide(call: Call) -> int | None:
        return errno.EILSEQ if call.step > 1 else None

    found = supervise(("open",), lambda: str(features.any_names(tmp_path).result), decide)
    assert found.result == "warn"


def test_reflinks_are_told_of_only(tmp_path: Path) -> None:
    found = features.reflinks(tmp_path)
    assert found.result is Result.OK
    assert found.message.startswith(("known", "not known"))


def test_this_machines_file_system_can_do_all_that_is_needed(tmp_path: Path) -> None:
    for probe in (
        features.hardlinks,
        features.noreplace,
        features.times,
        features.modes,
        features.any_names,
    ):
        found = probe(tmp_path)
        assert found.result is Result.OK, found
