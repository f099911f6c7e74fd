"""`huai-server fallback serve` with a real rsync daemon and real, unmodified clients."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import NAME, SECONDS, run_server, server_command, server_environment
from tests.support.fallback_service import MAY_CHROOT
from tests.support.mounting import needs_mounts
from tests.support.processes import until
from tests.support.redirecting import contents


class Site:
    """An upstream whose fallback runs."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.root = folder / "state"
        self.tree = folder / "tree"
        self.copy = folder / "copy"
        self.fallback = folder / "fallback"
        self.log = folder / "log"
        self.port = 0
        self.settings: dict[str, object] = {}
        self.modules: dict[str, str] = {}
        self.tree.mkdir()
        for number in range(20):
            (self.tree / f"d{number % 3}").mkdir(exist_ok=True)
            (self.tree / f"d{number % 3}/f{number}").write_bytes(os.urandom(1000 * number))
        self.add(NAME, self.tree)
        assert run_server(self.root, "commit", NAME).returncode == 0

    def add(self, name: str, tree: Path, **values: object) -> None:
        """Write server.toml with one more module."""
        fallback = ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
        self.modules[name] = f'path = "{tree}"\nfallback = {{ {fallback} }}\n'
        self.write()

    def write(self) -> None:
        settings = {
            "folder": str(self.fallback),
            "address": "127.0.0.1",
            "port": self.port,
            "shutdown_grace": 20.0,
            "use_chroot": MAY_CHROOT,
            **self.settings,
        }
        lines = ["[fallback]", *(f"{key} = {json.dumps(each)}" for key, each in settings.items())]
        for name, text in self.modules.items():
            lines += [f"[modules.{name}]", text]
        self.root.mkdir(exist_ok=True)
        new = self.root / "new"
        new.write_text("\n".join(lines))
        new.replace(self.root / "server.toml")

    @property
    def url(self) -> str:
        return f"rsync://127.0.0.1:{self.port}/{NAME}/"

    def rsync(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["rsync", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    def fetch(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.rsync("-a", "--delete", *options, self.url, f"{self.copy}/")

    def slow_client(self) -> subprocess.Popen[str]:
        """One that is in the middle of a file when this returns, and for some seconds more."""
        (self.tree / "slow").write_bytes(os.urandom(3_000_000))
        assert run_server(self.root, "commit", NAME).returncode == 0
        client = subprocess.Popen(
            ["rsync", "-a", "--bwlimit=1000", f"{self.url}slow", f"{self.folder}/slow/"],
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: any((self.folder / "slow").glob(".slow.*")))
        return client

    def finished(self, client: subprocess.Popen[str]) -> None:
        said = client.communicate(timeout=SECONDS)[1]
        assert (client.returncode, said) == (0, "")
        assert (self.folder / "slow/slow").read_bytes() == (self.tree / "slow").read_bytes()

    @property
    def listener(self) -> int:
        """The process of rsync that listens."""
        pattern = f"rsync --daemon.*{re.escape(str(self.fallback))}/rsyncd.conf"
        found = subprocess.run(
            ["pgrep", "-o", "-f", pattern], capture_output=True, text=True, timeout=30, check=False
        )
        return int(found.stdout or 0)


@pytest.fixture
def site(short_path: Path) -> Site:
    return Site(short_path)


@contextlib.contextmanager
def serving(site: Site, *, umask: int = -1) -> Iterator[subprocess.Popen[str]]:
    with site.log.open("w") as log:
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
        for line in process.stdout:
            said = json.loads(line)
            if said["type"] == "listening":
                site.port = said["port"]
                break
        assert site.port, site.log.read_text()
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()
        assert "Traceback" not in site.log.read_text()
        assert not site.listener


@pytest.mark.parametrize("chroot", sorted({MAY_CHROOT, False}))
def test_a_plain_client_follows_each_commit(site: Site, chroot: bool) -> None:
    site.settings["use_chroot"] = chroot
    site.write()
    with serving(site):
        assert site.fetch().returncode == 0
        assert contents(site.copy) == contents(site.tree)
        (site.tree / "d1/new").write_bytes(b"new")
        (site.tree / "d0").rename(site.tree / "renamed")
        assert "attr tree" in run_server(site.root, "commit", NAME).stdout
        done = site.fetch("-i")
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(site.copy) == contents(site.tree)
        local = site.rsync("-anci", "--delete", f"{site.tree}/", f"{site.copy}/")
        assert local.stdout == ""
    log = site.log.read_text()
    assert re.search(rf"^.* send \[127\.0\.0\.1\] {NAME} \d+ d1/new 3$", log, re.MULTILINE), log


@pytest.mark.parametrize("chroot", sorted({MAY_CHROOT, False}))
def test_it_serves_whatever_the_umask(site: Site, chroot: bool) -> None:
    site.settings["use_chroot"] = chroot
    site.settings["folder"] = str(site.folder / "not/there/yet")
    site.fallback = site.folder / "not/there/yet"
    site.write()
    with serving(site, umask=0o077):
        assert site.fetch().returncode == 0
        assert contents(site.copy) == contents(site.tree)


def test_a_module_is_added_while_a_transfer_runs(site: Site) -> None:
    with serving(site) as process:
        client = site.slow_client()
        other = site.folder / "other"
        other.mkdir()
        (other / "file").write_text("other")
        site.add("other", other, kind="real", comment="as it is")
        until(lambda: "as it is" in site.rsync(f"rsync://127.0.0.1:{site.port}/").stdout)
        got = site.rsync("-a", f"rsync://127.0.0.1:{site.port}/other/", f"{site.folder}/got/")
        assert got.returncode == 0
        (site.root / "server.toml").write_text("nonsense = [")
        process.send_signal(signal.SIGHUP)
        until(lambda: "remains in effect" in site.log.read_text())
        site.finished(client)
        assert site.fetch().returncode == 0
        site.write()


def test_a_listener_that_is_killed_comes_back(site: Site) -> None:
    with serving(site):
        client = site.slow_client()
        listener = site.listener
        os.kill(listener, signal.SIGKILL)
        until(lambda: site.fetch().returncode == 0)
        assert site.listener != listener
        site.finished(client)
        assert contents(site.copy) == contents(site.tree)


@pytest.mark.parametrize("what", ["fallback", "fallback/m", "fallback/m/generations/1"])
def test_an_emptied_folder_is_an_error_and_then_healed(site: Site, what: str) -> None:
    with serving(site):
        assert site.fetch().returncode == 0
        for each in (site.folder / what).iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()
        for _ in range(200):
            done = site.fetch()
            # The one thing that must never happen: a listing with nothing in it.
            assert contents(site.copy) == contents(site.tree), (done.stdout, done.stderr)
            if done.returncode == 0:
                break
            time.sleep(0.05)
        until(lambda: site.fetch().returncode == 0)


def test_it_ends_after_its_transfers(site: Site) -> None:
    with serving(site) as process:
        client = site.slow_client()
        process.terminate()
        until(lambda: site.rsync(site.url).returncode != 0)
        site.finished(client)
        assert process.wait(SECONDS) == 0


def test_who_may_connect(site: Site) -> None:
    secrets = site.folder / "secrets"
    secrets.write_text("user:password\n")
    secrets.chmod(0o600)
    site.add("closed", site.tree, hosts_deny=["127.0.0.1"], kind="real")
    site.add("secret", site.tree, auth_users=["user"], secrets_file=str(secrets), kind="real")
    site.add("one", site.tree, max_connections=1, kind="real")
    site.add("hidden", site.tree, list=False, kind="real")
    site.add("none", site.tree, kind="off")
    with serving(site):
        base = f"rsync://127.0.0.1:{site.port}"
        assert set(site.rsync(f"{base}/").stdout.split()) == {"m", "closed", "secret", "one"}
        assert "access denied" in site.rsync(f"{base}/closed/").stderr
        assert site.rsync(f"{base}/none/").returncode == 5
        assert site.rsync(f"{base}/hidden/").returncode == 0
        with_password = [f"--password-file={site.folder}/password"]
        for password, code in (("wrong", 5), ("password", 0)):
            (site.folder / "password").write_text(password)
            (site.folder / "password").chmod(0o600)
            url = f"rsync://user@127.0.0.1:{site.port}/secret/"
            assert site.rsync(*with_password, url).returncode == code


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
            ended = site.rsync("-rt", *options.split(), site.url, f"{site.folder}/{options}/")
            words = f"refuse {refused}" if refused else ""
            assert (ended.returncode == 0) == (not refused), (options, ended.stderr)
            assert words in ended.stderr, options


def test_many_clients_and_huge_filters(site: Site) -> None:
    (site.folder / "rules").write_text("".join(f"- /no/such/{n}*\n" for n in range(20_000)))
    with serving(site):
        command = ["rsync", "-a", "--exclude-from", str(site.folder / "rules"), site.url]
        clients = [
            subprocess.Popen([*command, f"{site.folder}/many/{number}/", "--mkpath"])
            for number in range(20)
        ]
        # Commits meanwhile, again and again.
        for number in range(5):
            (site.tree / f"d1/during{number}").write_bytes(b"x" * number)
            assert run_server(site.root, "commit", NAME).returncode == 0
        assert {client.wait(SECONDS) for client in clients} <= {0, 24}
        real = contents(site.tree)
        for number in range(20):
            for name, data in contents(site.folder / f"many/{number}").items():
                assert real[name] == data


def test_a_service_without_confinement_says_so(site: Site) -> None:
    site.settings["use_chroot"] = False
    site.write()
    said = "connections are not confined: fallback.use_chroot is false"
    with serving(site) as process:
        assert said in site.log.read_text()
        assert said in run_server(site.root, "status").stderr
        process.kill()
        process.wait()
        assert said not in run_server(site.root, "status").stderr
        until(lambda: not site.listener)
    with serving(site):
        assert said in run_server(site.root, "status").stderr
    assert said not in run_server(site.root, "status").stderr
    assert said in run_server(site.root, "fallback", "conf", "--no-test").stderr
    site.settings["confine"] = "require"
    site.write()
    for command in (["serve"], ["conf", "--no-test"]):
        done = run_server(site.root, "fallback", *command)
        assert done.returncode == ExitCode.REQUIREMENT
        assert "fallback.confine requires it" in done.stderr


@needs_mounts
def test_an_image_stays_in_memory(site: Site) -> None:
    def is_kept() -> bool:
        """Whether the image, and no other one, is in memory as a whole."""
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
            assert run_server(site.root, "commit", NAME).returncode == 0
            until(is_kept)
    finally:
        run_server(site.root, "fallback", "remove", NAME)


def test_two_services_of_one_folder(site: Site) -> None:
    with serving(site):
        assert run_server(site.root, "fallback", "serve").returncode == ExitCode.LOCKED


def test_conf_is_what_an_own_daemon_needs(site: Site) -> None:
    assert run_server(site.root, "fallback", "build", NAME).returncode == 0
    done = run_server(site.root, "fallback", "conf")
    assert done.returncode == 0, done.stderr
    assert "LD_PRELOAD=/" in done.stdout
    said = json.loads(run_server(site.root, "fallback", "conf", "--no-test", "--json").stdout)
    assert said["text"] in done.stdout
    assert Path(said["environment"]["LD_PRELOAD"]).exists()
    assert f"path = {site.fallback}/{NAME}/.redirected" in said["text"]
    assert "log file" not in said["text"]  # standard error is no file under systemd
    site.settings["log_file"] = "/var/log/rsyncd.log"
    site.write()
    again = run_server(site.root, "fallback", "conf", "--no-test").stdout
    assert "log file = /var/log/rsyncd.log" in again


def static_program(folder: Path) -> Path:
    source = folder / "static.c"
    source.write_text("int main(void) { return 0; }")
    program = folder / "static-rsync"
    subprocess.run(["gcc", "-static", source, "-o", program], check=True, timeout=60)
    return program


def foreign_program(folder: Path) -> Path:
    program = folder / "foreign-rsync"
    binary = bytearray(Path(shutil.which("rsync") or "").read_bytes())
    binary[18:20] = b"\xf3\x00"
    program.write_bytes(binary)
    program.chmod(0o755)
    return program


def unloading_program(folder: Path) -> Path:
    """It starts the real one without the library."""
    program = folder / "unloading-rsync"
    program.write_text('#!/bin/sh\nunset LD_PRELOAD\nexec rsync "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (static_program, "linked statically"),
        (foreign_program, "another architecture"),
        (unloading_program, "the redirection to content does not work"),
        (lambda folder: folder / "missing", "program not found"),
    ],
)
def test_it_does_not_start_with_an_rsync_that_would_send_holes(
    site: Site, make: Callable[[Path], Path], reason: str
) -> None:
    site.settings["rsync"] = str(make(site.folder))
    site.write()
    for command in ("serve", "conf"):
        done = run_server(site.root, "fallback", command)
        assert done.returncode == ExitCode.REQUIREMENT, done
        assert reason in done.stderr
        assert "\n  " in done.stderr  # what to do
    assert not (site.fallback / "rsyncd.conf").exists()
