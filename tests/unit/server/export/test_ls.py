"""`ls-lR.gz`, compared with the real `ls -lR` of the same tree."""

import gzip
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.exporting import Exporter
from tests.support.mirror_files import ls_lr

DAY = 86_400


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    return Exporter(short_path, files=())


def exported(exporter: Exporter) -> bytes:
    exporter.upstream.commit()
    exporter.outside("ls-lR")
    return gzip.decompress(exporter.read("ls-lR.gz"))


def real(tree: Path) -> bytes:
    done = subprocess.run(
        ["ls", "-lR"],
        cwd=tree,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def blocks(text: bytes) -> bytes:
    """Remove what metadata do not hold: blocks of files, and sizes of directories.

    On ext4 most directories have the size 4096 of an export, and the columns must match.
    """
    if Path(tempfile.gettempdir()).stat().st_size < 4096:
        text = re.sub(rb"(?m)^(d\S+ +\d+ \S+ +\S+) +\d+", rb"\1 size", text)
        text = re.sub(rb"(?m)^([-l]\S+ +\d+ \S+ +\S+) +", rb"\1 ", text)
    lines = text.split(b"\n")
    return b"\n".join(b"total" if line.startswith(b"total ") else line for line in lines)


def test_it_is_what_ls_says(exporter: Exporter) -> None:
    upstream = exporter.upstream
    upstream.configure(digest="off")  # some have a mode that denies an ordinary user
    now = time.time()
    ages = (0, 1, 100, 181, 184, 366, 4000, 25_000)
    for number, age in enumerate(ages):
        upstream.write(f"ages/{number}", "x" * 10**number if number < 6 else "", now - age * DAY)
    upstream.write("future", mtime=now + 30 * DAY)
    for number, mode in enumerate((0o4755, 0o4644, 0o2755, 0o2644, 0o1777, 0o1666, 0, 0o7777)):
        upstream.write(f"modes/{number}").chmod(mode)
        (upstream.tree / f"modes/d{number}").mkdir()
        (upstream.tree / f"modes/d{number}").chmod(mode | 0o500)
    (upstream.tree / "link").symlink_to("modes/0")
    (upstream.tree / "dangling").symlink_to("x" * 100)
    upstream.write("hard/a", "content")
    for number in range(11):
        (upstream.tree / f"hard/b{number}").hardlink_to(upstream.tree / "hard/a")
    (upstream.tree / "again").hardlink_to(upstream.tree / "hard/a")
    for path in ("a/b/c/d/e", "a.b/c", "a-b", "a/b.c", "Z", "empty/.keep", ".hidden/x", "sp ace"):
        upstream.write(path)
    for number in range(300):
        upstream.write(f"many/{number}/{number % 7}", "x" * number)
    for place in sorted(upstream.tree.rglob("*"), reverse=True):
        if place.is_dir() and not place.is_symlink():
            os.utime(place, (now - 3 * DAY, now - 3 * DAY))
    assert blocks(exported(exporter)) == blocks(real(upstream.tree))


def test_owners_are_those_of_the_tree(exporter: Exporter) -> None:
    if os.geteuid() == 0:
        upstream = exporter.upstream
        for number, owner in enumerate((0, 1, 65534, 123_456)):
            os.chown(upstream.write(f"d{number}/f"), owner, owner)
        for number, owner in enumerate((1, 54_321, 2_000_000)):
            os.chown(upstream.write(f"m/{number}"), owner, 0)
    exporter.upstream.write("e")
    assert blocks(exported(exporter)) == blocks(real(exporter.upstream.tree))


def test_a_block_is_taken_to_hold_4_kibibytes(exporter: Exporter) -> None:
    for number, size in enumerate((0, 1, 4096, 4097)):
        exporter.upstream.write(f"{number}", "x" * size)
    (exporter.upstream.tree / "d").mkdir()
    assert exported(exporter).startswith(b".:\ntotal 20\n")


def test_no_name_ends_a_line(exporter: Exporter) -> None:
    tree = os.fsencode(exporter.upstream.tree)
    for name in (b"a\nb", b"t\tc", b"\xff\xfe", b"\x1b[31m", b"<script>&"):
        Path(os.fsdecode(tree + b"/" + name)).write_text("")
    Path(os.fsdecode(tree + b"/d\n")).mkdir()
    os.symlink(b"to\nwards", tree + b"/link")
    directories = ls_lr(exported(exporter))
    assert [line.name for line in directories[b"."]] == [
        *(b"?[31m", b"<script>&", b"a?b", b"d?", b"link -> to?wards", b"t?c", b"\xff\xfe")
    ]
    assert list(directories) == [b".", b"./d?"]


def test_times_before_1970_and_far_ahead_have_their_year(exporter: Exporter) -> None:
    for name, seconds in {"early": -1, "earlier": -7_000_000_000, "late": 9_000_000_000}.items():
        exporter.upstream.write(name, mtime=seconds)
    os.utime(exporter.upstream.write("new"), (1, 1))
    lines = {line.name: line.time for line in ls_lr(exported(exporter))[b"."]}
    assert lines[b"early"] == "Dec 31  1969"
    assert lines[b"new"] == "Jan  1  1970"
    assert lines[b"late"] == "Mar 14  2255"


def test_gzip_says_neither_when_nor_what(exporter: Exporter) -> None:
    exporter.upstream.write("f")
    exported(exporter)
    header = exporter.read("ls-lR.gz")[:10]
    assert header[:2] == b"\x1f\x8b"
    assert header[3] == 0  # no name, no comment
    assert header[4:8] == bytes(4)  # no time
