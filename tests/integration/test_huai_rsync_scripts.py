"""`huai-rsync` below the scripts that mirrors run: ftpsync's two stages, Arch's syncrepo."""

import os
import re
from pathlib import Path

import pytest

from tests.support.rsync_calls import Mirror, mirror, program, run
from tests.support.upstream import Ended, Site, Upstream

HOST = "here.example"
OWN = (
    f"Archive-Update-in-Progress-{HOST}",
    f"Archive-Update-Required-{HOST}",
    f"project/trace/{HOST}",
    f"project/trace/{HOST}-stage1",
    "project/trace/_hierarchy",
    "project/trace/_traces",
)
COMMON = (
    *(f"--filter={rule}_/{name}" for name in OWN for rule in ("exclude", "protect")),
    *("--filter=include_/project/", "--filter=protect_/project/"),
    *("--filter=include_/project/trace/", "--filter=protect_/project/trace/"),
    *("--filter=include_/project/trace/*", "--bwlimit=0", "-prltvHSB8192", "--safe-links"),
    *("--timeout", "3600", "--stats", "--no-human-readable", "--no-inc-recursive"),
    *("--exclude=.~tmp~/", "--filter=exclude_/pool/**/*_arm64.deb"),
)
"""The options of Debian's ftpsync 20180513 for every rsync, with ARCH_EXCLUDE="arm64" in part."""
FIRST = (
    *("--include=*.diff/", "--exclude=*.diff/Index", "--exclude=Packages*", "--exclude=Sources*"),
    *("--exclude=Release*", "--exclude=InRelease", "--include=i18n/by-hash", "--exclude=i18n/*"),
    "--exclude=ls-lR*",
)
SECOND = ("--max-delete=40000", "--delay-updates", "--delete", "--delete-delay")
EXCLUDED = "--delete-excluded"
SPEED = re.compile(r".* ([0-9.,]+) bytes/sec$")
SENT = re.compile(r"(^|.* )sent ([0-9]+) bytes  received ([0-9]+) bytes.*")


@pytest.fixture
def pair(place: Site, tmp_path: Path) -> Mirror:
    """A Debian-like upstream with traces of its own."""
    pair = mirror(place, tmp_path)
    for name in (b"a_amd64", b"a_arm64", b"b_amd64"):
        pair.up.put(b"pool/main/%b.deb" % name, b"one")
    pair.up.put(b"README", b"read", mode=0o644)
    pair.up.put(b"dists/stable/Release", b"one")
    pair.up.put(b"project/trace/master.example", b"master")
    pair.up.commit()
    return pair


def write_own(pair: Mirror, name: str, text: str) -> None:
    """Write a file of the mirror's own, the same in both trees."""
    for tree in (pair.down.dest, pair.twin):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (10**9, 10**9))


def run_stage(pair: Mirror, tmp_path: Path, *options: str) -> tuple[str, str]:
    """Run the same stage by huai and by rsync; return the logs of both."""
    logs = (tmp_path / "log-huai", tmp_path / "log-rsync")
    for log in logs:
        log.unlink(missing_ok=True)
    calls = [("--quiet", "--log-file", str(log), *COMMON, *options) for log in logs]
    ended, real = pair.call(*calls[0]), pair.real(*calls[1])
    assert (ended.code, ended.out, ended.err) == (real.code, "", "")
    return logs[0].read_text(), logs[1].read_text()


def items(log: str) -> list[str]:
    """Return the items of a log, in no order; rsync fetches a file that was only touched."""
    texts = (line.split("] ", 1)[1] for line in log.splitlines())
    matches = [text for text in texts if re.match(r"[<>ch.*][fdLe*]|\*del", text)]
    return sorted(text for text in matches if not text.endswith("./"))


def test_ftpsync_finds_its_figures_and_no_errors(pair: Mirror, tmp_path: Path) -> None:
    pair.down.configure(filter=OWN_FILTER)
    write_own(pair, f"project/trace/{HOST}", "mine")
    write_own(pair, OWN[0], "locked")
    run_stage(pair, tmp_path, *SECOND, EXCLUDED)
    for update in (lambda _: None, change, drop):
        update(pair.up)
        pair.up.commit()
        for options in (FIRST, (*SECOND, EXCLUDED)):
            log, real = run_stage(pair, tmp_path, *options)
            assert items(log) == items(real)
            first, *_, last, _ = log.splitlines()
            assert SPEED.match(last)
            assert SENT.match(last)
            assert first.endswith("] receiving file list")
            for tree in (pair.down.dest, pair.twin):
                assert (tree / f"project/trace/{HOST}").read_text() == "mine"
                assert (tree / OWN[0]).exists()
        pair.assert_equal()
    # Huai did all of it: nothing made it compare the whole tree again.
    assert not pair.down.state.attempted


OWN_FILTER = (
    *(f"- /{name}" for name in OWN),
    *("+ /project/", "+ /project/trace/", "+ /project/trace/*"),
    "- /pool/**/*_arm64.deb",
)
"""The part of `COMMON` that says what is mirrored."""


def change(up: Upstream) -> None:
    """A package comes, another goes, with its index."""
    up.put(b"pool/main/c_amd64.deb", b"three")
    up.put(b"pool/main/c_arm64.deb", b"three")
    up.put(b"dists/stable/Release", b"another")
    up.put(b"project/trace/master.example", b"again")
    up.at(b"pool/main/b_amd64.deb").unlink()


def drop(up: Upstream) -> None:
    """The upstream gives its traces up: the folder stays for our own, and so all that is in it."""
    up.at(b"project/trace/master.example").unlink()
    up.at(b"project/trace").rmdir()
    up.at(b"project").rmdir()


def test_extraneous_files_go_unless_the_call_protects_them(pair: Mirror) -> None:
    """As with rsync: the tree held more when huai found it."""
    for name in ("own/keep/a", "own/b", "x.iso", "dir/y.iso", "dir/other", "gone/z"):
        write_own(pair, name, "own")
    pair.down.configure(filter=("- *.iso",))
    options = ("-aH", "--delete", "--exclude=*.iso", "--filter=protect /own/keep")
    for _ in range(2):
        ended, _ = pair.call_both(*options)
        assert ended.err == ""
        for tree in (pair.down.dest, pair.twin):
            for name in ("own", "dir"):  # whose times say when something was deleted there
                os.utime(tree / name, (10**9, 10**9))
        pair.assert_equal()
    assert sorted(os.listdir(pair.down.dest / "own")) == ["keep"]
    assert (pair.down.dest / "dir/y.iso").exists()
    assert not (pair.down.dest / "gone").exists()


SYNCREPO = ("-rtlH", "--safe-links", "--delete-after", "--delay-updates", "--timeout=600")


@pytest.fixture
def arch(place: Site, tmp_path: Path) -> Mirror:
    """An Arch-like upstream, mirrored."""
    arch = mirror(place, tmp_path)
    arch.up.many(b"core", 4)
    arch.up.put(b"lastsync", b"1")
    arch.up.commit()
    assert arch.call("-p", *SYNCREPO).code == 0
    return arch


def fetch_lastsync(arch: Mirror, *options: str, target: str = "lastsync") -> Ended:
    """Call huai-rsync as syncrepo does when nothing has changed, with --quiet from cron."""
    environment = {"HUAI_CLIENT_ROOT": str(arch.down.root)}
    ends = (f"{arch.source}lastsync", f"{arch.down.dest}/{target}")
    return run(arch.program, *options, *ends, environment=environment)


@pytest.mark.parametrize("target", ["lastsync", ""])
def test_a_single_file_puts_nothing_in_doubt(arch: Mirror, target: str) -> None:
    (arch.up.tree / "lastsync").write_text("2 not committed")
    for options in (("-rtlH", "--quiet"), ("-t",), ("-rtlvn",)):
        ended = fetch_lastsync(arch, *options, target=target)
        assert (ended.code, ended.err) == (0, "")
    assert (arch.down.dest / "lastsync").read_text() == "2 not committed"
    assert not arch.down.state.attempted
    arch.up.put(b"lastsync", b"3")
    arch.up.commit()
    ended = arch.call("-pq", *SYNCREPO)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (arch.down.dest / "lastsync").read_text() == "3"


def test_more_than_a_single_file_does(arch: Mirror) -> None:
    """A file that is not there may be a folder; one that deletes or moves aside may do anything."""
    (arch.down.dest / "lastsync").unlink()
    assert fetch_lastsync(arch, "-rtlHq").code == 0
    assert arch.down.state.attempted
    assert arch.call("-p", *SYNCREPO).code == 0
    assert not arch.down.state.attempted
    assert fetch_lastsync(arch, "-rtlHqR", target="").code == 0
    assert arch.down.state.attempted


def test_cron_gets_only_the_messages_it_asks_for(arch: Mirror, subtests: pytest.Subtests) -> None:
    for options, explain, explained in [
        ((), "", True),
        (("-q",), "", False),
        (("-n",), "", False),
        (("-q",), "yes", True),
        ((), "no", False),
    ]:
        with subtests.test(options=options, explain=explain):
            environment = {"HUAI_RSYNC_EXPLAIN": explain} if explain else {}
            ended = arch.call("-aH", "--delete", "--checksum", *options, environment=environment)
            assert ended.code == 0
            assert ("the real rsync runs: --checksum" in ended.err) is explained
            assert bool(ended.err) is explained


def test_a_daemon_behind_a_remote_shell(place: Site, tmp_path: Path) -> None:
    """As CRAN wants it: -e is used for the source of the call, and huai does the rest."""
    pair = mirror(place, tmp_path)
    up, down = pair.up, pair.down
    up.many(b"src", 3)
    config, shell, calls = (tmp_path / name for name in ("rsyncd.conf", "shell", "calls"))
    config.write_text(f"use chroot = no\n[cran]\npath = {up.tree}\n")
    daemon = f"rsync --server --daemon --config={config} ."
    shell.write_text(f'#!/bin/sh\necho "$1" >>{calls}\nexec {daemon}\n')
    shell.chmod(0o755)
    down.configure(content_urls=("rsync://cran.example/cran",))
    options = ("-rltpH", "--delete", "-e", str(shell), "cran.example::cran/")
    settings = {"HUAI_CLIENT_ROOT": str(down.root), "HUAI_RSYNC_EXPLAIN": "yes"}
    for number in range(2):
        up.put(b"src/new %d" % number, b"content")
        up.commit()
        for top, command in ((down.dest, pair.program), (pair.twin, Path("rsync"))):
            ended = run(command, *options, f"{top}/", environment=settings)
            assert (ended.code, ended.err) == (0, "")
        pair.assert_equal()
    assert set(calls.read_text().split()) == {"cran.example"}
    assert not down.state.attempted


@pytest.mark.parametrize("option", ["--version", "--help", "-V"])
def test_it_says_what_it_is_after_rsyncs_own_words(option: str, tmp_path: Path) -> None:
    ended = run(program(tmp_path), option, environment={})
    real = run("rsync", option, environment={})
    assert (ended.code, ended.err) == (real.code, real.err)
    assert ended.out.startswith(real.out)
    assert "huai-rsync(1)" in ended.out.removeprefix(real.out)
    machine = run(program(tmp_path), "-VV", environment={})
    assert machine.out == run("rsync", "-VV", environment={}).out
