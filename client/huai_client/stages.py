"""The order in which a tree is published: payload, then indices, then pointers.

Pure.  The rules are data: first match wins, from the end of the publication backwards.
An index must never name what is not there yet, a pointer never an index that is not.
"""

import re
from typing import NamedTuple

from huai_schema.paths import RelPath

STAGES = ("payload", "indices", "pointers")
PAYLOAD, INDICES, POINTERS = range(3)


class Rule(NamedTuple):
    """Paths that match belong to a stage."""

    stage: int
    pattern: re.Pattern[bytes]
    """Searched in the whole path with a slash in front."""
    why: str


def _rule(stage: int, pattern: bytes, why: str) -> Rule:
    return Rule(stage, re.compile(pattern), why)


RULES = (
    _rule(POINTERS, rb"/dists/(.*/)?(InRelease|Release|Release\.gpg)$", "apt"),
    _rule(POINTERS, rb"/repodata/repomd\.xml(\.asc|\.key)?$", "rpm"),
    _rule(POINTERS, rb"/[^/]+\.(db|files)(\.tar\.[a-z0-9]+)?(\.sig)?$", "pacman"),
    _rule(POINTERS, rb"/APKINDEX\.tar\.gz$", "apk"),
    _rule(POINTERS, rb"/(current_)?repodata(_shards)?[^/]*\.(json|msgpack)[^/]*$", "conda"),
    _rule(POINTERS, rb"/project/trace/[^/]+$", "trace files"),
    _rule(POINTERS, rb"/(latest|current)[^/]*$", "latest and current"),
    _rule(POINTERS, rb"/(timestamp[^/]*|TIME|lastupdate|lastsync)$", "time stamps"),
    _rule(INDICES, rb"/dists/", "apt"),
    _rule(INDICES, rb"/repodata/", "rpm"),
    _rule(INDICES, rb"/simple/", "pypi"),
    _rule(INDICES, rb"/(fullfiletimelist|fullfilelist|imagelist)-[^/]+$", "Fedora's file lists"),
    _rule(INDICES, rb"/ls-lR[^/]*$", "file lists"),
)


def stage_of(path: RelPath) -> int:
    """The stage, an index into `STAGES`, in which `path` is published."""
    rooted = b"/" + path
    for rule in RULES:
        if rule.pattern.search(rooted):
            return rule.stage
    return PAYLOAD
