"""An attr tree that does not fit, or a file system that is full: refused, and nothing lost."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import NAME, SECONDS, run_server, server_command, server_environment
from tests.support.fallback_service import upstream
from tests.support.mounting import may_mount, needs_mounts
from tests.support.processes import until

V1 = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
needs_groups = pytest.mark.skipif(
    not (may_mount() and os.access(V1.parent, os.W_OK)), reason="no cgroup that may be changed here"
)


@pytest.fixture
def in_memory(short_path: Path) -> Iterator[Path]:
    """A tmpfs that can be filled."""
    short_path.chmod(0o755)
    place = short_path / "fallback"
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=0,mode=755", "tmpfs", place],
        check=True,
        timeout=30,
    )
    yield place
    subprocess.run(["umount", "-l", place], check=True, timeout=30)


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group in which little memory may be taken."""
    place = V1.parent / f"huai-test-{os.getpid()}"
    place.mkdir()
    yield place

    def is_removed() -> bool:
        with suppress(OSError):
            place.rmdir()
        return not place.exists()

    until(is_removed)  # the kernel keeps it until its last process is gone


@needs_groups
def test_the_limit_of_a_container_is_seen_before_it_kills(
    short_path: Path, in_memory: Path, group: Path
) -> None:
    root = upstream(short_path, {f"f{number}": b"" for number in range(20)})
    (group / V1.name).write_text(f"{40 << 20}")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    def build() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            server_command(root, "fallback", "build", NAME),
            env=server_environment(),
            preexec_fn=enter,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    refused = build()
    assert refused.returncode == ExitCode.FALLBACK, refused
    assert "MiB are available here" in refused.stderr
    assert not (in_memory / NAME / "tree").exists()
    (group / V1.name).write_text(f"{512 << 20}")
    assert build().returncode == 0


@needs_mounts
def test_a_full_file_system_can_be_checked(short_path: Path, in_memory: Path) -> None:
    root = upstream(short_path, {f"f{number}": b"" for number in range(20)})
    assert run_server(root, "fallback", "build", NAME).returncode == 0
    filler = in_memory / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(2 << 20))
    checked = run_server(root, "fallback", "check", NAME)
    assert checked.returncode == 0, checked.stderr
    assert "equal" in checked.stdout
    built = run_server(root, "fallback", "build", "--rebuild", NAME)
    assert built.returncode == ExitCode.FALLBACK, built
    filler.unlink()
    assert run_server(root, "fallback", "build", "--rebuild", NAME).returncode == 0


def test_a_service_that_is_told_to_end_does_not_wait_for_a_build(short_path: Path) -> None:
    root = upstream(short_path, {f"f{number}": b"" for number in range(30_000)})
    generations = short_path / "fallback" / NAME / "generations"
    process = subprocess.Popen(
        server_command(root, "fallback", "serve"),
        env=server_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: generations.is_dir() and any(generations.iterdir()))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert out == ""  # neither built nor listening
    assert not (short_path / "fallback" / NAME / "tree").is_symlink()
    assert list(generations.iterdir()) == []
