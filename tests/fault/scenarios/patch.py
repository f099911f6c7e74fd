"""A large file that is changed in place: it is the old version or the new one, never a mix."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_client.staging import Journals, finish_patches
from huai_client.state.paths import module_places
from tests.fault.killing import Ground, Hit
from tests.fault.story import finish
from tests.support.nginx import nginx
from tests.support.upstream import T0, Downstream, Pair, Site

BLOCK = 64 << 10
NAME = b"disk.img"
OLD = os.urandom(5 * BLOCK) + bytes(BLOCK) + os.urandom(BLOCK + 99)
NEW = OLD[BLOCK : 2 * BLOCK] + OLD[BLOCK : 3 * BLOCK] + bytes(BLOCK) + os.urandom(4 * BLOCK)
"""Moved, the same, zeros, and what has to come; shorter than before."""


@contextmanager
def changed_image(place: Site) -> Iterator[Pair]:
    up = place.upstream(block_index=128 << 10)
    up.put(NAME, OLD)
    up.put(b"other", b"old")
    with nginx(up.tree.parent) as web:
        url = f"{web.url}/{up.name}"
        down = place.synced_downstream(up, content_urls=(url,), in_place=["*.img"])
        up.put(NAME, NEW, mtime=T0 + 10**9)
        up.put(b"other", b"new content", mtime=T0 + 10**9)
        up.commit()
        yield up, down


def image(dest: Path) -> bytes:
    return (dest / os.fsdecode(NAME)).read_bytes()


def journals_of(down: Downstream) -> Path:
    return module_places(down.root, down.name).patches


def journals(folder: Path) -> int:
    return len([path for path in folder.glob("*") if path.suffix != ".new"])


def check(dest: Path, folder: Path) -> int:
    """Check that it is one of both versions once the journals are obeyed; return their number."""
    paths = journals(folder)
    if not paths:
        assert image(dest) in (OLD, NEW)
    finish_patches(Journals(folder, dest))
    assert image(dest) in (OLD, NEW)
    assert journals(folder) == 0
    return paths


class Patching:
    """An upstream and a downstream whose image changes."""

    def __init__(self, ground: Ground) -> None:
        self.up, self.down = ground.enter(changed_image(ground.site))
        self.folders = [self.down.dest, self.down.root]

    def run(self) -> int:
        return self.down.sync().code

    def journal_or_version(self, _: Hit) -> str:
        """A file that is half changed has a journal."""
        if journals(journals_of(self.down)):
            return "half changed"
        assert image(self.down.dest) in (OLD, NEW)
        return "whole"

    def is_finished(self, _: Hit) -> None:
        finish(self.down, self.up)
        assert image(self.down.dest) == NEW

    def is_finished_after_the_journal(self, hit: Hit) -> None:
        check(self.down.dest, journals_of(self.down))
        self.is_finished(hit)
