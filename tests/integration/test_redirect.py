"""A stock rsync daemon behind the preload library: the listed bytes, or none."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_server.fallback.redirect import preload_library
from tests.support.background import background
from tests.support.processes import until
from tests.support.redirecting import SECONDS, Stage, contents, is_held
from tests.support.rsyncd import CHROOTS

BIG = 4 << 20
ODD = "odd \n [name]* \udcff"
OPTIONS = (
    *("", "--checksum", "--no-inc-recursive", "-H", "-S", "-z", "-HX --append-verify"),
    *("--inplace", "--copy-links", "-F", "--whole-file -I"),
)


@pytest.fixture
def stage(short_path: Path) -> Stage:
    stage = Stage(short_path)
    stage.write("small", b"small")
    stage.write("folder/big", os.urandom(BIG))
    stage.write(f"folder/{ODD}", b"odd")
    stage.write("folder/empty", b"")
    os.link(stage.real / "small", stage.real / "folder/linked")
    (stage.real / "link").symlink_to("small")
    return stage


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """An empty folder on a tmpfs, where attr trees usually are."""
    with tempfile.TemporaryDirectory(prefix="h", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("chroot", CHROOTS)
def test_the_content_is_the_real_one(stage: Stage, chroot: str, subtests: pytest.Subtests) -> None:
    stage.list_it()
    with stage.daemon(use_chroot=chroot) as url:
        for options in OPTIONS:
            with subtests.test(options=options):
                for _ in range(2):
                    done = stage.fetch(url, *options.split())
                    assert (done.returncode, done.stderr) == (0, "")
                copied = contents(stage.copy)
                assert {name: copied[name] for name in contents(stage.real)} == contents(stage.real)
                shutil.rmtree(stage.copy)


@pytest.mark.parametrize("chroot", CHROOTS)
def test_named_files_wildcards_and_filter_files(stage: Stage, tmp_path: Path, chroot: str) -> None:
    stage.write("folder/.rsync-filter", b"- big\n")
    stage.write("list", b"small\nfolder/big\n")
    stage.list_it()
    names = tmp_path / "names"
    names.write_bytes(b"folder/big\0small\0")
    with stage.daemon(use_chroot=chroot) as url:
        for source, options, expected in (
            (url, ["--from0", f"--files-from={names}"], {"folder/big", "small"}),
            # The list, and the filter, are content that the server reads.
            (url, ["--files-from=:list"], {"folder/big", "small"}),
            (f"{url}sm*", [], {"small"}),
        ):
            assert stage.fetch(source, *options).returncode == 0
            assert set(contents(stage.copy)) == expected
            shutil.rmtree(stage.copy)
        assert stage.fetch(url, "-F").returncode == 0
        assert "folder/big" not in contents(stage.copy)


def delete(path: Path) -> None:
    path.unlink()


def shorten(path: Path) -> None:
    os.truncate(path, BIG // 2)


def lengthen(path: Path) -> None:
    os.truncate(path, BIG * 2)


def replace_with_equal_size(path: Path) -> None:
    path.unlink()
    path.write_bytes(os.urandom(BIG))


def replace_with_symlink(path: Path) -> None:
    times = path.stat()
    elsewhere = path.parents[2] / "elsewhere"
    elsewhere.write_bytes(os.urandom(BIG))
    os.utime(elsewhere, ns=(times.st_atime_ns, times.st_mtime_ns))
    path.unlink()
    path.symlink_to(elsewhere)


def replace_with_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_with_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_unreadable(path: Path) -> None:
    path.chmod(0)


def symlink_above(path: Path) -> None:
    moved = path.parents[2] / "moved"
    path.parent.rename(moved)
    path.parent.symlink_to(moved)


CHANGES: tuple[Callable[[Path], None], ...] = (
    delete,
    shorten,
    lengthen,
    replace_with_equal_size,
    replace_with_symlink,
    replace_with_directory,
    replace_with_fifo,
    make_unreadable,
    symlink_above,
)


@pytest.mark.parametrize("chroot", CHROOTS)
def test_what_is_not_as_listed_is_not_sent(stage: Stage, chroot: str) -> None:
    names = [f"{change.__name__}/big" for change in CHANGES]
    for name in names:
        stage.write(name, os.urandom(BIG))
    stage.list_it()
    for name, change in zip(names, CHANGES, strict=True):
        change(stage.real / name)
    with stage.daemon(use_chroot=chroot) as url:
        done = stage.fetch(url)
    assert done.returncode in (23, 24), done.stderr
    copied = contents(stage.copy)
    assert copied.keys().isdisjoint(names)
    assert copied["small"] == b"small"


def test_hardlinks_that_changed_hang_no_client(stage: Stage) -> None:
    stage.list_it()
    for name in ("small", "folder/linked"):
        path = stage.copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"an older one")
    (stage.real / "small").write_bytes(b"newest")
    with stage.daemon() as url:
        assert stage.fetch(url, "-H").returncode == 24
    assert (stage.copy / "small").read_bytes() == b"an older one"


def start_fetch(stage: Stage, url: str, rate: int) -> subprocess.Popen[str]:
    """Start a client that fetches at `rate` kB/s."""
    limit = f"--bwlimit={rate}"
    command = ["rsync", "-a", "--no-o", "--no-g", limit, url, f"{stage.copy}/"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def test_a_file_that_changes_while_it_is_sent_does_not_arrive(stage: Stage) -> None:
    path = stage.write("slow", os.urandom(BIG))
    stage.list_it()
    with stage.daemon() as url:
        client = start_fetch(stage, f"{url}slow", 1000)
        until(lambda: any(stage.copy.glob(".slow.*")))
        with path.open("r+b") as file:  # in place, the size stays
            file.seek(BIG - 4096)
            file.write(b"x" * 4096)
        errors = client.communicate(timeout=SECONDS)[1]
    assert client.returncode in (23, 24), errors
    assert not (stage.copy / "slow").exists()


def test_nothing_outside_of_the_module(stage: Stage) -> None:
    secret = stage.real.parent / "secret"
    secret.write_bytes(b"secret")
    (stage.real / "out").symlink_to(secret)
    (stage.real / "etc").symlink_to("/etc/passwd")
    stage.list_it()
    for chroot in CHROOTS:
        with stage.daemon(use_chroot=chroot) as url:
            stage.fetch(f"{url}../secret")
            stage.fetch(f"{url}/../../secret")
            stage.fetch(url, "--copy-links")
            stage.fetch(f"{url}/etc/passwd")
    assert not [name for name, data in contents(stage.copy).items() if b"secret" in data]
    assert not (stage.copy / "etc").exists()
    assert not (stage.copy / "passwd").exists()


def test_without_the_library_there_is_no_module(stage: Stage, tmp_path: Path) -> None:
    stage.list_it()
    broken = tmp_path / "broken.so"
    foreign = bytearray(preload_library().read_bytes())
    foreign[18:20] = b"\xf3\x00"  # e_machine of another processor
    broken.write_bytes(foreign)
    for preload in (broken, tmp_path / "missing.so"):
        for chroot in CHROOTS:
            with stage.daemon(preload=preload, use_chroot=chroot) as url:
                done = stage.fetch(url)
            assert done.returncode == 5
            assert "@ERROR" in done.stderr + done.stdout
            assert not stage.copy.exists()


def test_an_emptied_attr_tree_is_refused(stage: Stage) -> None:
    generation = stage.list_it()
    for path in generation.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    with stage.daemon() as url:
        done = stage.fetch(url)
    assert done.returncode == 5, done.stderr
    assert not stage.copy.exists()


def test_a_client_finishes_on_the_generation_that_it_began_with(stage: Stage) -> None:
    for number in range(40):
        stage.write(f"many/{number:02}", os.urandom(100_000))
    before = contents(stage.real)
    old = stage.list_it()
    with stage.daemon() as url:
        client = start_fetch(stage, url, 2000)
        until((stage.copy / "many/00").exists)
        client.send_signal(signal.SIGSTOP)
        stage.write("new", b"new")
        stage.list_it("2")
        assert is_held(old)
        client.send_signal(signal.SIGCONT)
        errors = client.communicate(timeout=SECONDS)[1]
        assert (client.returncode, errors) == (0, "")
        assert contents(stage.copy) == before
        assert not is_held(old)
        assert stage.fetch(url).returncode == 0
        assert contents(stage.copy) == contents(stage.real)


def test_no_listing_lacks_a_name_that_is_replaced_meanwhile(memory_path: Path) -> None:
    """A tmpfs shows it at another place from then on, which a reader may have passed."""
    stage = Stage(memory_path)
    stage.write("many/0", b"")
    many = stage.list_it() / "many"
    for number in range(1, 20_000):
        (many / str(number)).touch()

    def replace(stop: threading.Event) -> None:
        new = memory_path / "new"
        while not stop.is_set():
            for number in range(0, 20_000, 7):
                new.touch()
                new.rename(many / str(number))

    with stage.daemon() as url, background(replace):
        listings = [stage.fetch(f"{url}many/", "--list-only") for _ in range(10)]
    for done in listings:
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 20_001


def test_the_library_may_go_while_the_daemon_runs(stage: Stage, tmp_path: Path) -> None:
    stage.list_it()
    mine = tmp_path / "redirect.so"
    shutil.copy(preload_library(), mine)
    with stage.daemon(preload=mine) as url:
        mine.unlink()
        assert stage.fetch(url).returncode == 0
    assert contents(stage.copy) == contents(stage.real)
