"""Command lines of real mirrors, each by `huai-rsync` and by rsync: adopt, change, nothing new.

From the scripts and pages of those who call rsync, with files of theirs left out.  Nothing is
configured: the source announces its metadata.  Rule to keep: each line names the program that does
it, so that a call that goes to the real rsync by mistake is seen.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from huai_schema.codec.announcement import FILE_NAME, Announcement
from tests.support.rsync_calls import picture, program, run
from tests.support.upstream import ENVIRONMENT, Ended, Site, Upstream

ARCH = "-rlptH --safe-links --delete-delay --delay-updates --timeout=600 --contimeout=60 --no-motd"
ARCH_OUT = "--exclude=*.links.tar.gz* --exclude=/other --exclude=/sources"
FTPSYNC = (
    "--quiet --log-file LOG --filter=exclude_/project/trace/here "
    "--filter=protect_/project/trace/here --filter=include_/project/ "
    "--filter=protect_/project/ --filter=include_/project/trace/* "
    "--bwlimit=0 -prltvHSB8192 --safe-links --chmod=D755,F644 --timeout 120 --stats "
    "--no-human-readable --no-inc-recursive --exclude=.~tmp~/"
)
FIRST = "--exclude=Packages* --exclude=Sources* --exclude=Release* --exclude=InRelease"
TUNASYNC = (
    "-aHvh --no-o --no-g --stats --filter=risk_.~tmp~/ --exclude=.~tmp~/ --delete --delete-after "
    "--delay-updates --safe-links --timeout=120"
)
UBUNTU = "--recursive --times --links --safe-links --hard-links --stats"


class Line(NamedTuple):
    """One command line."""

    program: str
    options: str
    first_stage: str = ""
    """Its options, once the tree is huai's."""


LINES = {
    "tunasync": Line("huai", TUNASYNC),
    "tunasync two-stage": Line("huai", TUNASYNC, f"-aHvh --no-o --no-g --stats {FIRST}"),
    "syncrepo terminal": Line("huai", f"{ARCH} -h -v --progress {ARCH_OUT}"),
    "Manjaro": Line("huai", "-rtlvH --safe-links --delete-after --progress -h -T TMP --no-motd"),
    "termux": Line("huai", f"{ARCH} --temp-dir=TMP"),
    "Ubuntu": Line("huai", f"{UBUNTU} --delete --delete-after", f"{UBUNTU} {FIRST}"),
    "Rocky": Line("huai", "-vrlptDSHP --exclude=*.~tmp~ --delete-delay --delay-updates"),
    "Alma, aside": Line("huai", "-avSHP --temp-dir=TMP --delete-delay"),
    "CentOS": Line("huai", "-aqzH --delete"),
    "CentOS in part": Line("huai", "-avSHP --delete --exclude=local* --exclude=isos"),
    "openSUSE": Line("huai", "-rlptHhi --delete-after --delay-updates --stats --exclude=/old/"),
    "CPAN": Line("huai", "-a --delete"),
    "CRAN": Line("huai", "-rtlzv --delete"),
    "Gentoo": Line("huai", "-rlptD --delete --delete-after --timeout=300 --stats -h"),
    "Fedora": Line("huai", "-vaH --numeric-ids --delete --delete-after --delay-updates"),
    "quick-fedora-mirror": Line(
        "rsync", "-aSH -f R_.~tmp~ --stats --preallocate --delay-updates --out-format=%i_%10l_%n%L"
    ),
    "preallocated": Line("huai", "-aSH --preallocate --delete --out-format=%i:%l:%n%L"),
    "two letters": Line("huai", "-aHii --delete"),
    "twice verbose": Line("huai", "-aHvv --delete"),
    "named": Line("huai", "-aH --info=name1,del1 --delete"),
    "logged": Line("huai", "-aH --delete --log-file=LOG"),
    "ftpsync": Line(
        "huai",
        f"{FTPSYNC} --max-delete=40000 --delay-updates --delete --delete-delay --delete-excluded",
        f"{FTPSYNC} {FIRST}",
    ),
    "modes of new files only": Line("rsync", "-rltH --delete --chmod=D755,F644"),
    "times ignored": Line("rsync", "-aHI --delete"),
    "compared": Line("rsync", "-aHc --delete"),
}


class Pair:
    """One upstream, and the trees that both programs make of it."""

    def __init__(self, place: Site, folder: Path) -> None:
        self.up = place.upstream()
        self.source = f"{place.content_url}/{self.up.name}/"
        self.folder, self.program = folder, program(folder)
        self.trees = (folder / "huai", folder / "rsync")
        (folder / "tmp").mkdir()
        fill(self.up)
        self.up.put(FILE_NAME.encode(), Announcement.of(place.url, self.up.name).encode())
        self.up.commit()
        for tree in self.trees:
            subprocess.run(["rsync", "-aH", self.source, f"{tree}/"], check=True, env=ENVIRONMENT)

    def call_both(self, options: str) -> tuple[Ended, Ended]:
        """Make one call, by huai-rsync and by rsync."""
        settings = {"HUAI_CLIENT_ROOT": str(self.folder / "root"), "HUAI_RSYNC_EXPLAIN": "yes"}
        ended, real = (
            run(command, *self._words(options, tree), self.source, f"{tree}/", environment=settings)
            for command, tree in zip((self.program, Path("rsync")), self.trees, strict=True)
        )
        return ended, real

    def _words(self, options: str, tree: Path) -> list[str]:
        text = re.sub(r"(?<=[ =])TMP\b", str(self.folder / "tmp"), options)
        return re.sub(r"(?<=[ =])LOG\b", f"{tree}.log", text).split()


def fill(up: Upstream) -> None:
    """Put an entry of each kind."""
    up.many(b"pool", 6, size=500)
    up.put(b"dists/stable/Release", b"one")
    up.put(b"dists/stable/Packages", b"one")
    up.put(b"project/trace/master", b"master")
    up.put(b"old/x", b"old")
    up.put(b"isos/big.iso", b"big")
    up.put(b"README", b"read me", mode=0o664)
    up.at(b"latest").symlink_to("pool/1")
    os.link(up.at(b"pool/2"), up.at(b"pool/twin"))
    set_times(up, 10**9)


def change(up: Upstream) -> None:
    """Update the upstream by a change of each kind."""
    up.put(b"pool/1", b"new content", mode=0o755)
    up.put(b"new/folder/file", b"new", mode=0o600)
    up.put(b"dists/stable/Release", b"another")
    up.put(b"dists/stable/Packages", b"another")
    up.put(b"project/trace/master", b"again")
    up.at(b"pool/3").unlink()
    up.at(b"pool/5").chmod(0o640)
    up.at(b"latest").unlink()
    up.at(b"latest").symlink_to("pool/5")
    os.link(up.at(b"pool/2"), up.at(b"pool/a third"))
    set_times(up, 1_100_000_000)


def set_times(up: Upstream, seconds: int) -> None:
    """Set the times of what changes: rsync does not see changes within one second."""
    for name in (b"latest", b"pool", b"dists/stable", b"project/trace", b""):
        os.utime(up.at(name), (seconds, seconds), follow_symlinks=False)


def keeps_hardlinks(options: str) -> bool:
    return bool(re.search(r"(^| )(-[a-zA-Z]*H|--hard-links( |$))", options))


@pytest.mark.parametrize("name", LINES)
def test_a_line_ends_as_with_rsync(name: str, place: Site, tmp_path: Path) -> None:
    line, pair = LINES[name], Pair(place, tmp_path)
    links = keeps_hardlinks(line.options)
    for step in (lambda _: None, change, lambda _: None):
        step(pair.up)
        pair.up.commit()
        stages = [line.options]
        if step is change and line.first_stage:
            stages.insert(0, line.first_stage)
        for options in stages:
            ended, real = pair.call_both(options)
            assert (ended.code, real.code) == (0, 0), (options, ended)
            ran = "rsync" if "the real rsync runs" in ended.err else "huai"
            assert ran == line.program, ended.err
        one, other = (picture(tree, links=links) for tree in pair.trees)
        assert one == other
    assert not os.listdir(tmp_path / "tmp")


def test_a_dry_run_into_an_empty_tree_is_rsyncs(place: Site, tmp_path: Path) -> None:
    """It holds nothing yet: for a first copy rsync is as good."""
    pair = Pair(place, tmp_path)
    for tree in pair.trees:
        subprocess.run(["rm", "-r", tree], check=True)
        tree.mkdir()
    ended, real = pair.call_both("-aHinv --delete")
    assert "it is empty" in ended.err
    assert [os.listdir(tree) for tree in pair.trees] == [[], []]
    assert ended.out.splitlines()[:-2] == real.out.splitlines()[:-2]
