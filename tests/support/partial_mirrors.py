"""Partial mirrors for tests: an upstream to filter, and rsync's word on what is to be there."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.upstream import Downstream, Site, Upstream, rsync_would

RELEASES = ("+ /dists/", "+ /dists/stable/***", "- /dists/*", "- *.iso")


def grown(place: Site) -> Upstream:
    up = place.upstream()
    for suite in (b"stable", b"testing"):
        up.many(b"dists/%b/main" % suite, 4)
        up.put(b"dists/%b/Release" % suite, b"release of " + suite)
    up.many(b"pool", 150)
    up.many(b"pool/old", 5)
    up.put(b"images/one.iso", b"iso" * 100)
    up.put(b"images/one.txt", b"text")
    up.at(b"images/link").hardlink_to(up.at(b"images/one.iso"))
    up.at(b"images/other").hardlink_to(up.at(b"images/one.iso"))
    up.commit()
    return up


def left_to_do(up: Upstream, down: Downstream, rules: Sequence[str]) -> str:
    """Return the changes that rsync would still make with these rules, contents compared."""
    # Our staging area is left out, whatever else the rules say.
    filters = [f"--filter={rule}" for rule in ("- /.~tmp~", "P /.~tmp~", *rules)]
    options = ["-anci", "--numeric-ids", "--delete", "--delete-excluded", *filters]
    return rsync_would(up, down, *options)


def assert_selected(up: Upstream, down: Downstream, rules: Sequence[str]) -> None:
    difference = left_to_do(up, down, rules)
    assert difference == "", (rules, difference)
    verified = down.verify("--content")
    assert verified.code == 0, verified
    assert not (down.dest / ".~tmp~").exists()


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def count_of(folder: Path) -> int:
    """Entries, the folder itself included."""
    return 1 + sum(1 for _ in folder.rglob("*"))
