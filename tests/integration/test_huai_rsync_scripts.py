"""`huai-rsync` below the scripts that mirrors run: ftpsync's two stages, Arch's syncrepo."""

import os
import re
from pathlib import Path

import pytest

from tests.support.rsync_calls import Mirror, mirror, picture, program, run
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
    *(f"--filter={what}_/{name}" for name in OWN for what in ("exclude", "protect")),
    *("--filter=include_/project/", "--filter=protect_/project/"),
    *("--filter=include_/project/trace/", "--filter=protect_/project/trace/"),
    *("--filter=include_/project/trace/*", "--bwlimit=0", "-prltvHSB8192", "--safe-links"),
    *("--timeout", "3600", "--stats", "--no-human-readable", "--no-inc-recursive"),
    *("--exclude=.~tmp~/", "--filter=exclude_/pool/**/*_arm64.deb"),
)
"""What Debian's ftpsync 20180513 gives every rsync, with ARCH_EXCLUDE="arm64" in part."""
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
    found = mirror(place, tmp_path)
    up = found.up
    for name in ("a_amd64", "a_arm64", "b_amd64"):
        up.put(b"pool/main/%b.deb" % name.encode(), b"one")
    up.put(b"README", b"read", mode=0o644)
    up.put(b"dists/stable/Release", b"one")
    up.put(b"project/trace/master.example", b"master")
    up.commit()
    return found


def put(path: Path, text: str) -> None:
    """A file of the mirror's own, the same in both trees."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (10**9, 10**9))


def stage(found: Mirror, tmp_path: Path, *options: str) -> tuple[Ended, Ended]:
    """The same stage for huai and for rsync, and what both wrote down in their logs."""
    logs = (tmp_path / "log-huai", tmp_path / "log-rsync")
    for log in logs:
        log.unlink(missing_ok=True)
    quiet = [("--quiet", "--log-file", str(log), *COMMON, *options) for log in logs]
    ended, real = found.call(*quiet[0]), found.real(*quiet[1])
    assert (ended.code, ended.out, ended.err) == (real.code, "", "")
    texts = [log.read_text() for log in logs]
    return (Ended(ended.code, texts[0], ""), Ended(real.code, texts[1], ""))


def items(log: str) -> list[str]:
    """What a log names, in no order; rsync fetches what was only touched."""
    found = (line.split("] ", 1)[1] for line in log.splitlines())
    kept = [each for each in found if re.match(r"[<>ch.*][fdLe*]", each) or each.startswith("*del")]
    return sorted(each for each in kept if not each.endswith("./"))


def test_ftpsync_finds_its_figures_and_no_errors(pair: Mirror, tmp_path: Path) -> None:
    pair.down.configure(filter=own_filter())
    for tree in (pair.down.dest, pair.twin):
        put(tree / f"project/trace/{HOST}", "mine")
        put(tree / OWN[0], "locked")
    stage(pair, tmp_path, *SECOND, EXCLUDED)
    up = pair.up
    for update in (lambda _: None, change, drop):
        update(up)
        up.commit()
        for options in (FIRST, (*SECOND, EXCLUDED)):
            huai, real = stage(pair, tmp_path, *options)
            assert items(huai.out) == items(real.out)
            last = huai.out.splitlines()[-2:]
            assert SPEED.match(last[0])
            assert SENT.match(last[0])
            assert huai.out.splitlines()[0].endswith("] receiving file list")
            for tree in (pair.down.dest, pair.twin):
                assert (tree / f"project/trace/{HOST}").read_text() == "mine"
                assert (tree / OWN[0]).exists()
        assert picture(pair.down.dest) == picture(pair.twin)
    # Huai did all of it: nothing made it compare the whole tree again.
    assert not pair.down.state.attempted


def own_filter() -> tuple[str, ...]:
    """The part of `COMMON` that says what is mirrored."""
    return (
        *(f"- /{name}" for name in OWN),
        *("+ /project/", "+ /project/trace/", "+ /project/trace/*"),
        "- /pool/**/*_arm64.deb",
    )


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


def test_extraneous_files_go_but_for_what_the_call_protects(pair: Mirror) -> None:
    """As with rsync: the tree held more when huai found it."""
    for tree in (pair.down.dest, pair.twin):
        for name in ("own/keep/a", "own/b", "x.iso", "dir/y.iso", "dir/other", "gone/z"):
            put(tree / name, "own")
    pair.down.configure(filter=("- *.iso",))
    options = ("-aH", "--delete", "--exclude=*.iso", "--filter=protect /own/keep")
    for _ in range(2):
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, ended.err, real.code) == (0, "", 0)
        for tree in (pair.down.dest, pair.twin):
            for name in ("own", "dir"):  # whose times say when something was deleted there
                os.utime(tree / name, (10**9, 10**9))
        assert picture(pair.down.dest) == picture(pair.twin)
    assert sorted(os.listdir(pair.down.dest / "own")) == ["keep"]
    assert (pair.down.dest / "dir/y.iso").exists()
    assert not (pair.down.dest / "gone").exists()


SYNCREPO = ("-rtlH", "--safe-links", "--delete-after", "--delay-updates", "--timeout=600")


@pytest.fixture
def arch(place: Site, tmp_path: Path) -> Mirror:
    """An Arch-like upstream, mirrored."""
    found = mirror(place, tmp_path)
    found.up.many(b"core", 4)
    found.up.put(b"lastsync", b"1")
    found.up.commit()
    assert found.call("-p", *SYNCREPO).code == 0
    return found


def single(found: Mirror, *options: str, target: str = "lastsync") -> Ended:
    """What syncrepo does when nothing has changed, with --quiet from cron."""
    environment = {"HUAI_CLIENT_ROOT": str(found.down.root)}
    ends = (f"{found.source}lastsync", f"{found.down.dest}/{target}")
    return run(found.program, *options, *ends, environment=environment)


@pytest.mark.parametrize("target", ["lastsync", ""])
def test_a_single_file_puts_nothing_in_doubt(arch: Mirror, target: str) -> None:
    (arch.up.tree / "lastsync").write_text("2 not committed")
    for options in (("-rtlH", "--quiet"), ("-t",), ("-rtlvn",)):
        ended = single(arch, *options, target=target)
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
    assert single(arch, "-rtlHq").code == 0
    assert arch.down.state.attempted
    assert arch.call("-p", *SYNCREPO).code == 0
    assert not arch.down.state.attempted
    assert single(arch, "-rtlHqR", target="").code == 0
    assert arch.down.state.attempted


@pytest.mark.parametrize(
    ("options", "wish", "heard"),
    [
        ((), "", True),
        (("-q",), "", False),
        (("-n",), "", False),
        (("-q",), "yes", True),
        ((), "no", False),
    ],
)
def test_cron_hears_only_what_it_asks_for(
    arch: Mirror, options: tuple[str, ...], wish: str, heard: bool
) -> None:
    environment = {"HUAI_RSYNC_EXPLAIN": wish} if wish else {}
    ended = arch.call("-aH", "--delete", "--checksum", *options, environment=environment)
    assert ended.code == 0
    assert ("the real rsync runs: --checksum" in ended.err) is heard
    assert bool(ended.err) is heard


def test_a_daemon_behind_a_remote_shell(place: Site, tmp_path: Path) -> None:
    """As CRAN wants it: -e is used for the source of the call, and huai does the rest."""
    found = mirror(place, tmp_path)
    found.up.many(b"src", 3)
    config, shell, calls = (tmp_path / name for name in ("rsyncd.conf", "shell", "calls"))
    config.write_text(f"use chroot = no\n[cran]\npath = {found.up.tree}\n")
    shell.write_text(
        f'#!/bin/sh\necho "$1" >>{calls}\nexec rsync --server --daemon --config={config} .\n'
    )
    shell.chmod(0o755)
    found.down.configure(content_urls=("rsync://cran.example/cran",))
    options = ("-rltpH", "--delete", "-e", str(shell), "cran.example::cran/")
    for number in range(2):
        found.up.put(b"src/new %d" % number, b"content")
        found.up.commit()
        for top, command in ((found.down.dest, found.program), (found.twin, Path("rsync"))):
            settings = {"HUAI_CLIENT_ROOT": str(found.down.root), "HUAI_RSYNC_EXPLAIN": "yes"}
            ended = run(command, *options, f"{top}/", environment=settings)
            assert (ended.code, ended.err) == (0, "")
        assert picture(found.down.dest) == picture(found.twin)
    assert set(calls.read_text().split()) == {"cran.example"}
    assert not found.down.state.attempted


@pytest.mark.parametrize("option", ["--version", "--help", "-V"])
def test_it_says_what_it_is_after_rsyncs_own_words(option: str, tmp_path: Path) -> None:
    ended = run(program(tmp_path), option, environment={})
    real = run("rsync", option, environment={})
    assert (ended.code, ended.err) == (real.code, real.err)
    assert ended.out.startswith(real.out)
    assert "huai-rsync(1)" in ended.out.removeprefix(real.out)
    machine = run(program(tmp_path), "-VV", environment={})
    assert machine.out == run("rsync", "-VV", environment={}).out
