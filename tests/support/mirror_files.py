"""Readers of what mirrors publish for other programs, written from how those programs behave.

Strict: what one of the real readers would trip over, or would take for something else, is an
`AssertionError`.
"""

import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

_SECTIONS = [b"[Version]", b"[Files]", b"[Checksums SHA1]", b"[End]"]
_TYPES = {kind + mark for kind in ("f", "d", "l") for mark in ("", "-", "*")}
_LS = re.compile(
    rb"([-dl])([-rwxsStT]{9}) +([0-9]+) (\S+) +(\S+) +([0-9]+) "
    rb"([A-Z][a-z]{2} [ 0-9][0-9] (?: [0-9]{4}|[0-9]{2}:[0-9]{2})) (.*)"
)
_JOB = {
    "name": str,
    "is_master": bool,
    "status": str,
    "last_update": str,
    "last_update_ts": int,
    "last_started": str,
    "last_started_ts": int,
    "last_ended": str,
    "last_ended_ts": int,
    "next_schedule": str,
    "next_schedule_ts": int,
    "upstream": str,
    "size": str,
}


class Row(NamedTuple):
    """A line of a fullfiletimelist."""

    time: int
    kind: str
    size: int
    path: str


def time_list(text: bytes) -> list[Row]:
    """A fullfiletimelist, as quick-fedora-mirror cuts it with awk and MirrorManager in Python.

    A section ends at an empty line; the last line but nothing else says that the list is whole.
    """
    assert text.endswith(b"\n[End]\n")
    parts = [part.split(b"\n") for part in text[:-1].split(b"\n\n")]
    assert [part[0] for part in parts] == _SECTIONS
    version, files, checksums, end = (part[1:] for part in parts)
    assert version == [b"2"]
    assert checksums == []
    assert end == []
    rows = []
    for line in files:
        time, kind, size, path = line.decode().split("\t")
        assert kind in _TYPES
        assert path.strip() == path
        assert not path.startswith("/")
        rows.append(Row(int(time), kind, int(size), path))
    assert len({row.path for row in rows}) == len(rows)
    return rows


def names(text: bytes) -> list[str]:
    """A fullfilelist or imagelist: one path a line, from `.`."""
    lines = text.decode().split("\n")
    assert lines.pop() == ""
    assert all(line.startswith("./") for line in lines)
    return [line[2:] for line in lines]


class Listed(NamedTuple):
    """A line of `ls -l`."""

    kind: str
    mode: str
    links: int
    owner: str
    group: str
    size: int
    time: str
    name: bytes


def ls_lr(text: bytes) -> dict[bytes, list[Listed]]:
    """The blocks of an `ls -lR`, in their order."""
    blocks: dict[bytes, list[Listed]] = {}
    for block in text.rstrip(b"\n").split(b"\n\n"):
        head, total, *lines = block.split(b"\n")
        assert head == b".:" or head.startswith(b"./")
        assert head.endswith(b":")
        assert re.fullmatch(rb"total [0-9]+", total)
        assert head not in blocks
        blocks[head[:-1]] = []
        for line in lines:
            match = _LS.fullmatch(line)
            assert match, line
            kind, mode, links, owner, group, size, time, name = match.groups()
            blocks[head[:-1]].append(
                Listed(
                    *(kind.decode(), mode.decode(), int(links), owner.decode(), group.decode()),
                    *(int(size), time.decode(), name),
                )
            )
    return blocks


def probed(text: bytes) -> int:
    """A stamp: mirmon takes the first word of the first line, mirrorbits the first word of all."""
    line = text.split(b"\n", 1)[0].decode()
    assert re.fullmatch(r"[0-9]+", line.split(" ", 1)[0])
    assert line.split()[0] == text.decode().split()[0]
    return int(text.split()[0])


class Trace(NamedTuple):
    """A trace file of Debian's mirrors."""

    time: datetime
    fields: dict[str, str]


def trace(text: bytes) -> Trace:
    """The output of `date -u` in the POSIX locale, then fields as ftpsync looks for them."""
    first, *lines = text.decode("ascii").splitlines()
    weekday, month, day, rest = re.fullmatch(r"(\w{3}) (\w{3}) ([ 0-9]\d) (.*)", first).groups()  # type: ignore[union-attr]
    text_date = f"{month} {day.strip()} {rest.replace('UTC', '+0000')}"
    moment = datetime.strptime(text_date, "%b %d %H:%M:%S %z %Y")
    assert moment.strftime("%a") == weekday
    fields = dict(line.split(": ", 1) for line in lines)
    assert len(fields) == len(lines)
    assert parsedate_to_datetime(fields["Date"]) == moment
    return Trace(moment, fields)


def jobs(text: bytes) -> list[dict[str, object]]:
    """`/jobs` of tunasync's manager, as Go would take it into its struct."""
    all_jobs = json.loads(text)
    for job in all_jobs:
        assert {key: type(value) for key, value in job.items()} == _JOB
        for key in ("last_update", "last_started", "last_ended", "next_schedule"):
            moment = datetime.strptime(job[key], "%Y-%m-%d %H:%M:%S %z")
            assert (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() == job[f"{key}_ts"]
        assert re.fullmatch(r"[0-9]+|[0-9]+\.[0-9]{2}[KMGTP]", job["size"])
    assert isinstance(all_jobs, list)
    return all_jobs


def b3sums(text: bytes) -> dict[bytes, str]:
    """A B3SUMS: name and digest."""
    digests = {}
    for line in text.decode().splitlines():
        escaped, digest, name = re.fullmatch(r"(\\?)([0-9a-f]{64})  (.+)", line).groups()  # type: ignore[union-attr]
        if escaped:
            assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)*", name)
            name = re.sub(r"\\(.)", lambda code: "\n" if code[1] == "n" else code[1], name)
        else:
            assert "\\" not in name
        digests[name.encode()] = digest
    return digests


def tree_state(tree: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of everything in a tree."""
    return {
        str(path.relative_to(tree)): (
            path.lstat().st_ino,
            path.lstat().st_size,
            path.lstat().st_mtime_ns,
        )
        for path in [tree, *tree.rglob("*")]
    }
