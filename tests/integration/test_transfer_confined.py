"""The confinement of an rsync child: it reads no file outside, and writes only what arrives.

Where the kernel has no Landlock, the tests prove that everything works without.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.transfer.errors import UpstreamRefusedError
from huai_client.transfer.limits import StallDetector
from huai_client.transfer.rsync.confinement import Domain, domain, run_in, version
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.run import Bounds, RsyncProcess
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from tests.support.processes import run_program
from tests.support.rsyncd import rsync_daemon
from tests.support.transfers import TEST_OPTIONS, Downstream, described, write_file

SECONDS = 30
SIZE = 3_000_000


@pytest.fixture
def upstream(short_path: Path) -> Path:
    (short_path / "up").mkdir()
    return short_path / "up"


@pytest.fixture
def down(short_path: Path) -> Downstream:
    return Downstream(short_path / "dest")


@contextmanager
def folder(path: Path) -> Iterator[int]:
    path.mkdir(exist_ok=True)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def ran(command: list[str | Path], handle: int, bounds: Bounds) -> tuple[int, RsyncProcess]:
    """A real rsync, in `handle`."""
    run = RsyncProcess(
        [os.fsencode(word) for word in command],
        names=b"",
        folder=handle,
        locks=(),
        stall=StallDetector(SECONDS),
        bounds=bounds,
    )
    return run.wait(lambda _: None), run


@pytest.mark.parametrize("confined", [True, False])
def test_rsync_reads_and_writes_nothing_outside(short_path: Path, *, confined: bool) -> None:
    dest, outside = short_path / "dest", short_path / "outside"
    for top in (dest, outside):
        top.mkdir()
        (top / "file").write_text("secret of " + top.name)
    url = ContentUrl.parse("rsync://h/m")
    with folder(dest / "incoming") as handle:
        bound = domain(url, "rsync", (), os.fsencode(dest), handle)
        assert bound is not None
        bounds = Bounds(domain=bound if confined else None)
        code, _ = ran(["rsync", "-a", dest / "file", "./"], handle, bounds)
        assert code == 0
        read, _ = ran(["rsync", "-a", outside / "file", "./stolen"], handle, bounds)
        write, _ = ran(["rsync", "-a", dest / "file", outside / "planted"], handle, bounds)
        tree, _ = ran(["rsync", "-a", dest / "file", dest / "published"], handle, bounds)
    shut = confined and version() > 0
    assert (read != 0, write != 0, tree != 0) == (shut, shut, shut)
    assert (dest / "incoming/file").read_text() == "secret of dest"
    assert (dest / "incoming/stolen").exists() is not shut
    assert (outside / "planted").exists() is not shut
    assert (dest / "published").exists() is not shut


def test_this_process_stays_free(tmp_path: Path) -> None:
    def start() -> str:
        return run_program("cat", tmp_path / "file").stdout

    (tmp_path / "file").write_text("text")
    bound = Domain((b"/usr", b"/bin", b"/lib", b"/lib64"), ())
    assert run_in(bound, start) == ("" if version() else "text")
    assert start() == "text"


def test_what_a_confined_start_raises_comes_out() -> None:
    def fail() -> None:
        raise FileNotFoundError("rsync")

    with pytest.raises(FileNotFoundError):
        run_in(Domain((), ()), fail)


def test_a_remote_shell_is_not_confined() -> None:
    for url, extra in (
        ("host:path", ()),
        ("/srv/mirror", ()),
        ("rsync://h/m", ("-e", "ssh")),
        ("rsync://h/m", ("--rsh=ssh -p 22",)),
    ):
        assert domain(ContentUrl.parse(url), "rsync", extra, b"/d", 0) is None


def test_a_program_that_connects_is_not_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSYNC_CONNECT_PROG", "nc %H 873")
    assert domain(ContentUrl.parse("rsync://h/m"), "rsync", (), b"/d", 0) is None


def test_files_that_options_name_may_be_used(
    upstream: Path, down: Downstream, short_path: Path, url: str
) -> None:
    secret, log = short_path / "secret", short_path / "logs/rsync.log"
    log.parent.mkdir()
    secret.write_text("word\n")
    secret.chmod(0o600)
    files = [write_file(upstream, b"a", b"1")]
    extra = (f"--password-file={secret}", f"--log-file={log}")
    outcome = down.fetch(files, url, replace(TEST_OPTIONS, extra=extra))
    assert outcome.arrived == files
    assert "receiving" in log.read_text()


def test_what_lies_behind_a_symlink_of_the_tree_is_no_basis(
    upstream: Path, down: Downstream, short_path: Path, url: str
) -> None:
    """A symlink to a folder outside stands where a directory is to come."""
    content = os.urandom(SIZE)
    file = write_file(upstream, b"d/shadow", content)
    outside = short_path / "outside"
    outside.mkdir()
    (outside / "shadow").write_bytes(content)
    (down.dest / "d").symlink_to(outside)
    outcome = down.fetch([file], url)
    assert outcome.complete
    assert outcome.bytes_received > SIZE  # no block of it was found here


def test_what_lies_in_the_tree_is_a_basis(upstream: Path, down: Downstream, url: str) -> None:
    content = os.urandom(SIZE)
    file = write_file(upstream, b"d/f", content + b"more")
    (down.dest / "d").mkdir()
    (down.dest / "d/f").write_bytes(content)
    outcome = down.fetch([file], url)
    assert outcome.complete
    assert outcome.bytes_received < SIZE // 10


def test_a_file_that_is_far_larger_than_announced_is_not_fetched(
    upstream: Path, down: Downstream, url: str
) -> None:
    write_file(upstream, b"odd\n\xff\\#name", bytes(40 << 20))
    real = described(upstream, b"odd\n\xff\\#name")
    announced = File(real.path, 5, real.mtime, digest=bytes(31) + b"1")
    small = write_file(upstream, b"small", b"1")
    outcome = down.fetch([announced, small], url)
    assert outcome.mismatched == [announced]
    assert outcome.arrived == [small]
    assert outcome.bytes_received < 1 << 20
    sizes = [path.stat().st_size for path in down.root.rglob("*") if path.is_file()]
    assert max(sizes, default=0) < 1 << 20


def test_a_sender_that_does_not_stop_is_stopped(upstream: Path, short_path: Path) -> None:
    """As one that states a small size and sends on: what rsync is asked for is not bounded here."""
    (upstream / "endless").write_bytes(os.urandom(8 << 20))
    url = ContentUrl.parse("rsync://h/m")
    with rsync_daemon({"m": upstream}) as daemon, folder(short_path / "in") as handle:
        command: list[str | Path] = ["rsync", "-t", "--partial", "--info=progress2"]
        code, run = ran([*command, f"{daemon}/m/endless", "./"], handle, Bounds(file=1 << 20))
    assert code != 0
    failure = classify_exit(code, run.output, url)
    assert isinstance(failure, UpstreamRefusedError)
    assert "more data than the metadata announce" in failure.message
    sizes = [path.stat().st_size for path in (short_path / "in").iterdir()]
    assert max(sizes, default=0) <= 1 << 20


def test_a_sender_of_too_many_bytes_in_all_is_stopped(upstream: Path, short_path: Path) -> None:
    for number in range(200):
        (upstream / str(number)).write_bytes(os.urandom(100_000))
    url = ContentUrl.parse("rsync://h/m")
    with rsync_daemon({"m": upstream}) as daemon, folder(short_path / "in") as handle:
        command: list[str | Path] = ["rsync", "-r", "--bwlimit=4000", "--info=progress2"]
        command.append("--no-human-readable")
        code, run = ran([*command, f"{daemon}/m/", "./"], handle, Bounds(total=1 << 20))
    assert isinstance(classify_exit(code, run.output, url), UpstreamRefusedError)
    assert sum(path.stat().st_size for path in (short_path / "in").iterdir()) < 15 << 20
