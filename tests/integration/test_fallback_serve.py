"""`huai-server fallback serve` with a real rsync daemon and real, unmodified clients."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import NAME, SECONDS, run_server, server_command, server_environment
from tests.support.fallback_service import MAY_CHROOT, configure
from tests.support.mounting import needs_mounts
from tests.support.processes import until
from tests.support.redirecting import contents


class Site:
    """An upstream whose fallback runs."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.root, self.tree = folder / "state", folder / "tree"
        self.copy, self.fallback = folder / "copy", folder / "fallback"
        self.port = 0
        self.settings: dict[str, object] = {"shutdown_grace": 20}
        self.modules: dict[str, str] = {NAME: ""}
        for number in range(20):
            (self.tree / f"d{number % 3}").mkdir(parents=True, exist_ok=True)
            (self.tree / f"d{number % 3}/f{number}").write_bytes(os.urandom(1000 * number))
        self.configure()
        self.commit()

    def configure(self, **settings: object) -> None:
        """Write server.toml, with these settings from now on."""
        self.settings |= settings
        text = "\n".join(self.modules.values())  # its first lines are of the module m
        configure(self.root, self.tree, port=self.port, modules=text, **self.settings)

    def add(self, name: str, tree: Path, **values: object) -> None:
        """Configure one more module, or the fallback of the first one."""
        fallback = ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
        head = "" if name == NAME else f'[modules.{name}]\npath = "{tree}"\n'
        self.modules[name] = f"{head}fallback = {{ {fallback} }}"
        self.configure()

    def commit(self) -> str:
        done = run_server(self.root, "commit", NAME)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def url(self, name: str = "") -> str:
        return f"rsync://127.0.0.1:{self.port}/{name}"

    def rsync(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["rsync", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    def fetch(self) -> subprocess.CompletedProcess[str]:
        return self.rsync("-a", "--delete", self.url(f"{NAME}/"), f"{self.copy}/")

    def assert_fetched(self) -> None:
        done = self.fetch()
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(self.copy) == contents(self.tree)

    def slow_client(self) -> subprocess.Popen[str]:
        """Start a client; return when it is in the middle of a file."""
        (self.tree / "slow").write_bytes(os.urandom(3_000_000))
        self.commit()
        client = subprocess.Popen(
            ["rsync", "-a", "--bwlimit=1000", self.url(f"{NAME}/slow"), f"{self.folder}/slow/"],
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: any((self.folder / "slow").glob(".slow.*")))
        return client

    def assert_finished(self, client: subprocess.Popen[str]) -> None:
        errors = client.communicate(timeout=SECONDS)[1]
        assert (client.returncode, errors) == (0, "")
        assert (self.folder / "slow/slow").read_bytes() == (self.tree / "slow").read_bytes()

    @property
    def listener(self) -> int:
        """The process of rsync that listens, or 0."""
        pattern = f"rsync --daemon.*{re.escape(str(self.fallback))}/rsyncd.conf"
        done = subprocess.run(
            ["pgrep", "-o", "-f", pattern], capture_output=True, text=True, timeout=30, check=False
        )
        return int(done.stdout or 0)


@pytest.fixture
def site(short_path: Path) -> Site:
    return Site(short_path)


@contextlib.contextmanager
def serving(site: Site, *, umask: int = -1) -> Iterator[subprocess.Popen[str]]:
    with (site.folder / "log").open("w") as log:
        process = subprocess.Popen(
            server_command(site.root, "fallback", "serve", "--json"),
            env=server_environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            umask=umask,
        )
    assert process.stdout is not None
    try:
        events = map(json.loads, process.stdout)
        ports = (event["port"] for event in events if event["type"] == "listening")
        site.port = next(ports, 0)
        assert site.port, site.log()
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()
        assert "Traceback" not in site.log()
        assert not site.listener


@pytest.mark.parametrize("chroot", sorted({MAY_CHROOT, False}))
def test_a_plain_client_follows_each_commit(site: Site, chroot: bool) -> None:
    site.configure(use_chroot=chroot)
    with serving(site):
        site.assert_fetched()
        (site.tree / "d1/new").write_bytes(b"new")
        (site.tree / "d0").rename(site.tree / "renamed")
        assert "attr tree" in site.commit()
        site.assert_fetched()
        local = site.rsync("-anci", "--delete", f"{site.tree}/", f"{site.copy}/")
        assert local.stdout == ""
    line = rf"^.* send \[127\.0\.0\.1\] {NAME} \d+ d1/new 3$"
    assert re.search(line, site.log(), re.MULTILINE), site.log()


@pytest.mark.parametrize("chroot", sorted({MAY_CHROOT, False}))
def test_it_serves_whatever_the_umask(site: Site, chroot: bool) -> None:
    site.fallback = site.folder / "not/there/yet"
    site.configure(use_chroot=chroot, folder=str(site.fallback))
    with serving(site, umask=0o077):
        site.assert_fetched()


def test_a_module_is_added_while_a_transfer_runs(site: Site) -> None:
    with serving(site) as process:
        client, listener = site.slow_client(), site.listener
        other = site.folder / "other"
        other.mkdir()
        (other / "file").write_text("other")
        site.add("other", other, kind="real", comment="another tree")
        until(lambda: "another tree" in site.rsync(site.url()).stdout)
        assert site.rsync("-a", site.url("other/"), f"{site.folder}/got/").returncode == 0
        # A restart would reset connections that wait to be accepted.
        assert site.listener == listener
        (site.root / "server.toml").write_text("nonsense = [")
        process.send_signal(signal.SIGHUP)
        until(lambda: "remains in effect" in site.log())
        site.assert_finished(client)
        assert site.fetch().returncode == 0
        site.configure()


def test_the_address_changes_while_a_transfer_runs(site: Site) -> None:
    with serving(site):
        client = site.slow_client()
        site.configure(address="127.0.0.2")
        until(lambda: site.rsync(f"rsync://127.0.0.2:{site.port}/").returncode == 0)
        assert "Connection refused" in site.rsync(site.url()).stderr
        site.assert_finished(client)


def test_a_listener_that_is_killed_comes_back(site: Site) -> None:
    with serving(site):
        client = site.slow_client()
        listener = site.listener
        os.kill(listener, signal.SIGKILL)
        until(lambda: site.fetch().returncode == 0)
        assert site.listener != listener
        site.assert_finished(client)
        assert contents(site.copy) == contents(site.tree)


@pytest.mark.parametrize("folder", ["fallback", "fallback/m", "fallback/m/generations/1"])
def test_an_emptied_folder_is_an_error_and_then_healed(site: Site, folder: str) -> None:
    with serving(site):
        assert site.fetch().returncode == 0
        for path in (site.folder / folder).iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

        def fetches() -> bool:
            done = site.fetch()
            # The one thing that must never happen: a listing with nothing in it.
            assert contents(site.copy) == contents(site.tree), (done.stdout, done.stderr)
            return done.returncode == 0

        until(fetches)


def test_clients_that_may_connect(site: Site) -> None:
    secrets, word = site.folder / "secrets", site.folder / "password"
    secrets.write_text("user:password\n")
    secrets.chmod(0o600)
    site.add("closed", site.tree, hosts_deny=["127.0.0.1"], kind="real")
    site.add("secret", site.tree, auth_users=["user"], secrets_file=str(secrets), kind="real")
    site.add("one", site.tree, max_connections=1, kind="real")
    site.add("hidden", site.tree, list=False, kind="real")
    site.add("none", site.tree, kind="off")
    with serving(site):
        assert set(site.rsync(site.url()).stdout.split()) == {"m", "closed", "secret", "one"}
        assert "access denied" in site.rsync(site.url("closed/")).stderr
        assert site.rsync(site.url("none/")).returncode == 5
        assert site.rsync(site.url("hidden/")).returncode == 0
        url = site.url("secret/").replace("://", "://user@")
        for password, code in (("wrong", 5), ("password", 0)):
            word.write_text(password)
            word.chmod(0o600)
            assert site.rsync(f"--password-file={word}", url).returncode == code


COMPRESSING = {
    "-z": "",
    "-zz": "",
    "-z --compress-choice=zstd": "",
    "-z --compress-choice=lz4": "",
    "-z --protocol=30": "",
    "--checksum": "--checksum",
    "-z --compress-level=22": "--compress-level",
    "-z --remote-option=--compress-level=22": "--compress-level",
    "-z --remote-option=--zl=22": "--zl",
    "-z --remote-option=--compress-threads=64": "--compress-threads",
    "-z --remote-option=--zt=64": "--zt",
}
"""Options of clients, and which of them is refused."""


def test_a_client_may_compress_and_not_say_how_hard(site: Site) -> None:
    with serving(site):
        for options, refused in COMPRESSING.items():
            url = site.url(f"{NAME}/")
            ended = site.rsync("-rt", *options.split(), url, f"{site.folder}/{options}/")
            words = f"refuse {refused}" if refused else ""
            assert (ended.returncode == 0) == (not refused), (options, ended.stderr)
            assert words in ended.stderr, options


def test_many_clients_and_huge_filters(site: Site) -> None:
    rules = site.folder / "rules"
    rules.write_text("".join(f"- /no/such/{n}*\n" for n in range(20_000)))
    with serving(site):
        command = ["rsync", "-a", "--exclude-from", str(rules), site.url(f"{NAME}/")]
        clients = [
            subprocess.Popen([*command, f"{site.folder}/many/{number}/", "--mkpath"])
            for number in range(20)
        ]
        # Commits meanwhile, again and again.
        for number in range(5):
            (site.tree / f"d1/during{number}").write_bytes(b"x" * number)
            site.commit()
        assert {client.wait(SECONDS) for client in clients} <= {0, 24}
    real = contents(site.tree)
    for number in range(20):
        assert contents(site.folder / f"many/{number}").items() <= real.items()


def test_a_service_without_confinement_says_so(site: Site) -> None:
    site.configure(use_chroot=False)
    warning = "connections are not confined: fallback.use_chroot is false"

    def print_status() -> str:
        return run_server(site.root, "status").stderr

    with serving(site) as process:
        assert warning in site.log()
        assert warning in print_status()
        process.kill()
        process.wait()
        assert warning not in print_status()
        until(lambda: not site.listener)
    with serving(site):
        assert warning in print_status()
    assert warning not in print_status()
    assert warning in run_server(site.root, "fallback", "conf", "--no-test").stderr
    site.configure(confine="require")
    for command in (["serve"], ["conf", "--no-test"]):
        done = run_server(site.root, "fallback", *command)
        assert done.returncode == ExitCode.REQUIREMENT
        assert "fallback.confine requires it" in done.stderr


@needs_mounts
def test_an_image_stays_in_memory(site: Site) -> None:
    def is_kept() -> bool:
        """True if the image, and no other one, is in memory as a whole."""
        smaps = Path(f"/proc/{process.pid}/smaps").read_text()
        mapped = re.findall(r"/attr-\S+\.erofs(?: \(deleted\))?\n(?:\w+: .*\n)+", smaps)
        images = [*(site.root / f"modules/{NAME}").glob("attr-*.erofs")]
        if len(mapped) != 1 or len(images) != 1 or images[0].name not in mapped[0]:
            return False
        locked = re.search(r"^Locked: +(\d+) kB", mapped[0], re.MULTILINE)
        return locked is not None and int(locked[1]) << 10 == images[0].stat().st_size

    site.add(NAME, site.tree, kind="erofs")
    try:
        with serving(site) as process:
            until(is_kept)
            assert site.fetch().returncode == 0
            (site.tree / "new").write_text("new")
            site.commit()
            until(is_kept)
    finally:
        run_server(site.root, "fallback", "remove", NAME)


def test_two_services_of_one_folder(site: Site) -> None:
    with serving(site):
        assert run_server(site.root, "fallback", "serve").returncode == ExitCode.LOCKED


def test_conf_is_enough_for_the_daemon_of_an_administrator(site: Site) -> None:
    assert run_server(site.root, "fallback", "build", NAME).returncode == 0
    done = run_server(site.root, "fallback", "conf")
    assert done.returncode == 0, done.stderr
    assert "LD_PRELOAD=/" in done.stdout
    conf = json.loads(run_server(site.root, "fallback", "conf", "--no-test", "--json").stdout)
    assert conf["text"] in done.stdout
    assert Path(conf["environment"]["LD_PRELOAD"]).exists()
    assert f"path = {site.fallback}/{NAME}/.redirected" in conf["text"]
    assert "log file" not in conf["text"]  # under systemd, standard error is a socket
    site.configure(log_file="/var/log/rsyncd.log")
    text = run_server(site.root, "fallback", "conf", "--no-test").stdout
    assert "log file = /var/log/rsyncd.log" in text


def write_foreign(program: Path) -> None:
    binary = bytearray(Path(shutil.which("rsync") or "").read_bytes())
    binary[18:20] = b"\xf3\x00"
    program.write_bytes(binary)


def write_unloading(program: Path) -> None:
    """Start the real one without the library."""
    program.write_text('#!/bin/sh\nunset LD_PRELOAD\nexec rsync "$@"\n')


PROGRAMS: list[tuple[Callable[[Path], object], str]] = [
    (Path.exists, "program not found"),
    (write_foreign, "cannot be started"),
    (write_unloading, "it loads no library"),
]


def test_it_does_not_start_with_an_rsync_that_would_send_holes(
    site: Site, subtests: pytest.Subtests
) -> None:
    program = site.folder / "other-rsync"
    site.configure(rsync=str(program))
    for write, reason in PROGRAMS:
        with subtests.test(reason):
            write(program)
            if program.exists():
                program.chmod(0o755)
            for command in ("serve", "conf"):
                done = run_server(site.root, "fallback", command)
                assert done.returncode == ExitCode.REQUIREMENT, done
                assert reason in done.stderr
                assert "\n  " in done.stderr  # the next step
            assert not (site.fallback / "rsyncd.conf").exists()
