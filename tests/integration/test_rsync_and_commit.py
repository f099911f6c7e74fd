"""Real rsync, its log, and the commit of what that names."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.committing import NAME, Upstream, run_server, server_command, server_environment
from tests.support.processes import run_program
from tests.support.rsyncd import rsync_daemon

HOOK = Path(__file__).parents[2] / "hooks" / "rsync-and-commit"
ODD = (
    b"new\nline", b"back\\slash", b"\\#101", b"\\#1", b"\xff\xfe", b" lead", b"trail ", b"x -> y",
    b"x => y", b"tab\tx", b"*deleting   zz", b"deleting me", b"\x7f", b"\xc3\xa9", b"#c", b"cr\r",
    b">f+++++++++ z", b"sent 5 bytes",
)  # fmt: skip


TUNASYNC = (
    "-aHvh", "--no-o", "--no-g", "--stats", "--filter", "risk .~tmp~/", "--exclude", ".~tmp~/",
    "--delete", "--delete-after", "--delay-updates", "--safe-links", "--timeout=120",
)  # fmt: skip

# worker/two_stage_rsync_provider.go: what the stages say, and the profile "debian" of the first.
FIRST_STAGE = (
    "-aHvh", "--no-o", "--no-g", "--stats", "--filter", "risk .~tmp~/", "--exclude", ".~tmp~/",
    "--safe-links", "--include=*.diff/", "--include=by-hash/", "--exclude=*.diff/Index",
    "--exclude=Contents*", "--exclude=Packages*", "--exclude=Sources*", "--exclude=Release*",
    "--exclude=InRelease", "--exclude=i18n/*", "--exclude=dep11/*",
    "--exclude=installer-*/current", "--exclude=ls-lR*", "--timeout=120",
)  # fmt: skip


class Mirror:
    """A mirror that rsync updates, with its module."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source"
        self.source.mkdir()
        self.upstream = Upstream(folder, folder / NAME)
        run_server(self.upstream.root, "add", NAME, str(self.upstream.tree))
        self.upstream.write("first")
        assert run_server(self.upstream.root, "commit", NAME).returncode == 0
        self.program = folder / "huai-server"
        command = " ".join(f"'{part}'" for part in server_command(self.upstream.root))
        self.program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.program.chmod(0o755)

    @property
    def log(self) -> Path:
        return self.upstream.root / "logs" / NAME

    def update(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {
            **server_environment(),
            "HUAI_SERVER": str(self.program),
            "HUAI_ROOT": str(self.upstream.root),
            **environment,
        }
        return run_program(HOOK, *arguments, env=variables)

    def by_list(self, *options: str) -> subprocess.CompletedProcess[str]:
        source, tree = f"{self.source}/", f"{self.upstream.tree}/"
        return self.update(NAME, "--", "rsync", "-aH", "--delete", *options, source, tree)

    def check(self) -> None:
        """Prove that the list named all that changed."""
        assert not self.log.exists()
        scan = self.upstream.commit()
        assert (scan.changed, scan.missed) == (False, 0)
        self.upstream.prove_sound()


@pytest.fixture
def mirror(short_path: Path) -> Mirror:
    short_path.chmod(0o755)
    return Mirror(short_path)


def test_names_that_rsync_spells_in_its_own_way(mirror: Mirror) -> None:
    source = os.fsencode(mirror.source)
    for name in ODD:
        (mirror.source / os.fsdecode(name)).write_bytes(name)
        os.symlink(b"to -> " + name, source + b"/s" + name)
    os.link(source + b"/x => y", source + b"/z => hard")
    (mirror.source / "d").mkdir()
    (mirror.source / "d" / "in").write_text("in")
    assert mirror.by_list().returncode == 0
    assert len(mirror.upstream.paths()) == 2 * len(ODD) + 3
    mirror.check()
    (mirror.source / "d" / "in").chmod(0o600)
    for name in ODD:
        os.unlink(source + b"/s" + name)
        (mirror.source / os.fsdecode(name)).write_bytes(name + b"changed")
    assert mirror.by_list().returncode == 0
    mirror.check()
    shutil.rmtree(mirror.source / "d")
    (mirror.source / "d").symlink_to("nowhere")
    assert mirror.by_list().returncode == 0
    mirror.check()


def test_what_a_daemon_sends(mirror: Mirror) -> None:
    for number in range(300):
        (mirror.source / f"p{number % 7}").mkdir(exist_ok=True)
        (mirror.source / f"p{number % 7}" / f"f{number}").write_text(f"{number}")
    with rsync_daemon({"m": mirror.source}) as url:
        tree = f"{mirror.upstream.tree}/"
        done = mirror.update("-aH", "--delete", f"{url}/m/", tree, TUNASYNC_MIRROR_NAME=NAME)
        assert done.returncode == 0, done.stderr
        mirror.check()


def test_tunasync_calls_it_as_rsync_and_names_no_mirror(mirror: Mirror) -> None:
    (mirror.source / "one").write_text("1")
    for dest in (f"{mirror.upstream.tree}", f"{mirror.upstream.tree}//"):
        (mirror.source / "dir").mkdir(exist_ok=True)
        (mirror.source / "dir" / str(len(dest))).write_text("x")
        done = mirror.update(*TUNASYNC, f"{mirror.source}/", dest)
        assert done.returncode == 0, done.stderr
        assert "Total file size: " in done.stdout
        assert f"dir/{len(dest)}" in mirror.upstream.paths()
        mirror.check()


def archive(source: Path, version: int) -> None:
    """Write what such a job mirrors: the packages and the index of one version alone."""
    shutil.rmtree(source)
    for path in (f"pool/p_{version}.deb", "dists/s/Release", "dists/s/i18n/Translation-en"):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("x" * version)


def test_each_stage_of_a_two_stage_job_is_committed(mirror: Mirror) -> None:
    call = (f"{mirror.source}/", str(mirror.upstream.tree))
    archive(mirror.source, 1)
    assert mirror.update(*TUNASYNC, *call).returncode == 0
    archive(mirror.source, 2)
    old, new, indices = "pool/p_1.deb", "pool/p_2.deb", ["Release", "i18n/Translation-en"]
    # The worker ends a job whose first stage fails, and begins again with it, which finds nothing.
    assert mirror.update(*FIRST_STAGE, *call, HUAI_SERVER="/no/such").returncode == 51
    assert mirror.update(*FIRST_STAGE, *call).returncode == 0
    assert {old, new} <= mirror.upstream.paths()  # nothing is deleted
    assert {mirror.upstream.file(f"dists/s/{name}").size for name in indices} == {1}
    mirror.check()
    assert mirror.update(*TUNASYNC, *call).returncode == 0
    assert mirror.upstream.paths() & {old, new} == {new}
    assert {mirror.upstream.file(f"dists/s/{name}").size for name in indices} == {2}
    mirror.check()


def test_a_partial_update_is_committed_and_its_code_passed_on(mirror: Mirror) -> None:
    """Options alone are a wrong call, and leave nothing."""
    done = mirror.update("--version")
    assert (done.returncode, done.stdout) == (1, "")
    assert "usage: " in done.stderr
    assert not mirror.log.parent.exists()
    (mirror.source / "good").write_text("good")
    tree = f"{mirror.upstream.tree}/"
    sources = (f"{mirror.source}/good", f"{mirror.source}/missing")
    assert mirror.update(NAME, "--", "rsync", "-a", *sources, tree).returncode == 23
    assert mirror.upstream.paths() == {"first", "good"}
    mirror.check()


def test_what_a_failed_update_changed_is_committed_with_the_next(mirror: Mirror) -> None:
    (mirror.source / "one").write_text("1")
    failing = mirror.source.parent / "failing"
    failing.write_text('#!/bin/sh\nrsync "$@"\nexit 30\n')
    failing.chmod(0o755)
    arguments = ("-a", f"{mirror.source}/", f"{mirror.upstream.tree}/")
    assert mirror.update(NAME, "--", str(failing), *arguments).returncode == 30
    assert mirror.upstream.paths() == {"first"}
    with mirror.log.open("a") as log:
        log.write("2026/01/02 03:04:05 [6] >f++++++")  # killed while it wrote
    (mirror.source / "two").write_text("2")
    assert mirror.update(NAME, "--", "rsync", *arguments).returncode == 0
    assert mirror.upstream.paths() == {"first", "one", "two"}
    mirror.check()


def test_a_commit_that_fails_keeps_the_log_and_a_program_after_it_does_not(mirror: Mirror) -> None:
    (mirror.source / "one").write_text("1")
    lists = mirror.upstream.root / "server.toml"
    text = lists.read_text()
    lists.write_text("not toml")
    assert mirror.by_list().returncode == 40
    lists.write_text(text)
    assert mirror.by_list().returncode == 0
    mirror.check()
    parts = mirror.source.parent / "parts"
    parts.mkdir()
    (parts / "fails").write_text("#!/bin/sh\nexit 1\n")
    (parts / "fails").chmod(0o755)
    (mirror.source / "two").write_text("2")
    arguments = ("rsync", "-a", f"{mirror.source}/", f"{mirror.upstream.tree}/")
    assert mirror.update(NAME, "--", *arguments, HUAI_POST_SYNC_D=str(parts)).returncode == 56
    mirror.check()
