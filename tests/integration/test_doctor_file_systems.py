"""Real file systems that lack room, rights or abilities, and kernels that refuse."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.config.modes import Modes
from huai_client.inspect.doctor import destination, machine
from huai_client.inspect.doctor.finding import Check, Finding, Result, run_checks
from huai_client.transfer.rsync.confinement import version
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


def mirror_of(dest: Path, modes: Modes = Modes.SAFE) -> Mirror:
    module = Module(url="http://127.0.0.1:9", dest=str(dest), modes=modes)
    return Mirror.of(dest.parent / "root", "m", module)


def run_check(check: Callable[[Mirror], Iterator[Finding]], dest: Path) -> list[Finding]:
    checks = [Check("check", "", check)]
    return [run.finding for run in run_checks(checks, mirror_of(dest))]


def assert_fails(findings: Iterable[Finding], code: ExitCode, words: str = "") -> None:
    (finding,) = findings
    assert (finding.result, finding.code) == (Result.FAIL, code), finding
    assert words in finding.message


@needs_mounts
@pytest.mark.parametrize(
    ("modes", "option", "result"),
    [
        (Modes.EXACT, "suid", Result.WARN),
        (Modes.EXACT, "nosuid", Result.OK),
        (Modes.SAFE, "suid", Result.OK),
    ],
)
def test_set_id_programs_cause_a_warning(
    disk: Path, modes: Modes, option: str, result: Result
) -> None:
    mount(disk, "-t", "tmpfs", "-o", option, "tmpfs")
    (finding,) = destination.set_id(mirror_of(disk, modes))
    assert finding.result is result


def test_it_says_whether_rsync_is_confined() -> None:
    (finding,) = machine.confinement(Path("/"))
    assert (finding.result is Result.OK) == (version() > 0)
    assert "Landlock" in finding.message


@needs_mounts
def test_a_disk_without_room(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=20m,nr_inodes=1000", "none")
    results = [finding.result for finding in run_check(destination.space, disk)]
    assert results == [Result.OK, Result.OK]
    (disk / "big").write_bytes(bytes(8 << 20))
    bytes_left, inodes_left = run_check(destination.space, disk)
    assert_fails([bytes_left], ExitCode.NO_SPACE)
    assert inodes_left.result is Result.OK
    assert next(machine.room_findings(disk)).result is Result.FAIL


@needs_mounts
def test_a_disk_that_is_nearly_full(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=600m,nr_inodes=1000", "none")
    with (disk / "big").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 575 << 20)
    assert run_check(destination.space, disk)[0].result is Result.WARN


@needs_mounts
def test_a_disk_without_inodes(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "size=20m,nr_inodes=99", "none")
    assert run_check(destination.space, disk)[1].code == ExitCode.NO_SPACE


@needs_mounts
def test_a_disk_that_is_read_only(disk: Path) -> None:
    mount(disk, "-t", "tmpfs", "-o", "ro", "none")
    findings = run_check(destination.destination, disk)
    assert_fails(findings, ExitCode.DESTINATION, "read-only")
    assert_fails(machine.root(disk), ExitCode.FILE_IO)


def check_as_another_user(folder: Path) -> None:
    root = folder / "root"
    (root / "modules" / "m").mkdir(parents=True)
    (finding,) = machine.root(root)
    assert finding.result is Result.OK
    state = root / "modules" / "m" / "state.json"
    state.touch()
    state.chmod(0o400)
    assert_fails(machine.root(root), ExitCode.FILE_IO, "state.json")
    assert_fails(machine.root(Path("/etc")), ExitCode.FILE_IO)
    assert_fails(run_check(destination.destination, Path("/etc")), ExitCode.DESTINATION)


def test_state_and_trees_of_others(short_path: Path) -> None:
    run_unprivileged(check_as_another_user, short_path)


@needs_mounts
def test_a_root_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    (finding,) = machine.root(tmp_path)
    assert finding.result is Result.WARN


@pytest.mark.parametrize(
    ("probe", "call", "answer", "result"),
    [
        (destination.hardlinks, "link", errno.EPERM, Result.FAIL),
        (destination.modes, "chmod", errno.EPERM, Result.FAIL),
        (destination.noreplace, "rename", errno.EINVAL, Result.WARN),
        (destination.noreplace, "rename", errno.ENOSYS, Result.WARN),
    ],
)
def test_a_call_that_the_kernel_refuses(
    tmp_path: Path, probe: Callable[[Path], Finding], call: str, answer: int, result: Result
) -> None:
    def work() -> tuple[str, str, int]:
        finding = probe(tmp_path)
        return str(finding.result), finding.fix, int(finding.code)

    outcome = supervise((call,), work, lambda _: answer)
    assert outcome.calls
    assert isinstance(outcome.result, tuple)
    found_result, fix, code = outcome.result
    assert found_result == str(result)
    assert fix
    assert code == (ExitCode.DESTINATION if result is Result.FAIL else ExitCode.OK)


@needs_mounts
def test_times_that_are_kept_to_the_second(disk: Path, short_path: Path) -> None:
    """As on an old ext3, whose inodes have no room for more."""
    image = short_path / "image"
    with image.open("wb") as file:
        file.truncate(4 << 20)
    make = ["mke2fs", "-q", "-F", "-t", "ext2", "-I", "128", str(image)]
    subprocess.run(make, check=True, timeout=30, capture_output=True)
    mount(disk, "-o", "loop", str(image))
    assert_fails([destination.times(disk)], ExitCode.DESTINATION, "123,456,789 ns off")
    # And the check says the same, and tidies up.
    assert_fails(run_check(destination.feature(destination.times), disk), ExitCode.DESTINATION)
    assert sorted(os.listdir(disk)) == ["lost+found", "timed", "timed-folder", "timed-link"]


def test_names_that_are_the_same_in_upper_and_lower_case(tmp_path: Path) -> None:
    (tmp_path / "case").symlink_to("Case")  # one name leads to the other's file
    assert_fails([destination.any_names(tmp_path)], ExitCode.DESTINATION)


def test_a_file_system_that_wants_utf_8(tmp_path: Path) -> None:
    def decide(call: Call) -> int | None:
        return errno.EILSEQ if call.step > 1 else None

    outcome = supervise(("open",), lambda: str(destination.any_names(tmp_path).result), decide)
    assert outcome.result == "warn"


def test_this_machines_file_system_can_do_all_that_is_needed(tmp_path: Path) -> None:
    for probe in (
        destination.hardlinks,
        destination.noreplace,
        destination.times,
        destination.modes,
        destination.any_names,
    ):
        finding = probe(tmp_path)
        assert finding.result is Result.OK, finding
    finding = destination.reflinks(tmp_path)
    assert finding.result is Result.OK
    assert finding.message.startswith(("supported", "not supported"))
