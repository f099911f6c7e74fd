"""Content that comes without a connection: copied from a path, or from what the tree has."""

import errno
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from blake3 import blake3

from huai_client.diff.candidate import Reuse
from huai_client.staging import Arrival, Staging
from huai_client.transfer.fetch import Outcome
from huai_client.transfer.local import LocalContent, ReusePolicy
from huai_client.transfer.options import TransferOptions
from huai_client.tree import Tree
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from tests.fault.killing import Ground, Hit
from tests.support.local_trees import T0, at, content, file
from tests.support.staged import incoming, ready
from tests.support.transfers import Downstream, described, write_file

OPTIONS = TransferOptions(program="rsync-that-is-not-installed", streams=1, retries=0)
GROUP = 65534 if os.geteuid() == 0 else os.getegid()
FINISH = (lambda _: None, lambda _: GROUP)


def _staging(dest: Path) -> Staging:
    return Staging(dest / ".~tmp~" / "huai")


class Copying:
    """A path with files of several kinds, and an empty staging area."""

    def __init__(self, ground: Ground) -> None:
        self.source, self.dest = ground.folder / "source", ground.folder / "dest"
        self.folders = [self.dest]
        contents = {b"a": b"1", b"d/b": os.urandom(300_000), b"d/e/c": b"3" * 5000, b"empty": b""}
        files = [write_file(self.source, name, data, mtime=T0) for name, data in contents.items()]
        with (self.source / "sparse").open("wb") as sparse:
            sparse.seek(1_000_000)
            sparse.write(b"its end")
        files.append(described(self.source, b"sparse"))
        files.append(described(self.source, b"d/b", digest=False)._replace(mode=0o777))
        self.wanted_files = [each for each in files if each.path != b"d/b" or each.digest is None]
        """Each path once; one has no digest."""
        self.dest.mkdir()
        with _staging(self.dest) as staging:
            self.area = staging.root

    def run(self) -> str:
        """Transfer once; what ended it, or the paths that did not get all their attributes."""
        try:
            down = Downstream(self.dest, FINISH)
            outcome = down.fetch(self.wanted_files, str(self.source), OPTIONS)
        except HuaiError as error:
            return error.message
        assert outcome.arrived == self.wanted_files
        return "".join(
            os.fsdecode(each.path) for each in self.wanted_files if each not in down.finished
        )

    def says_why(self, hit: Hit) -> None:
        """Attributes that cannot be set are left to publishing."""
        if hit.fault.answer == errno.EPERM:
            left = {os.fsdecode(each.path) for each in self.wanted_files}
            # The area itself is not a file to publish.
            assert hit.result in left or str(hit.result).startswith(f"{self.area}: ")
        else:
            assert hit.killed or hit.names_the_reason

    def all_is_ready(self, _: Hit) -> None:
        self.run()
        with _staging(self.dest) as staging:
            staging.recover(self.wanted_files)
            for file in self.wanted_files:
                source = self.source / os.fsdecode(file.path)
                assert ready(staging, file).read_bytes() == source.read_bytes()


SPARSE = bytes(20_000) + b"its end"
MOVED, COPIED, COMES = file(b"moved", 3000), file(b"copied", 3000), file(b"new/comes", 100)
HOLES = file(b"holes", len(SPARSE))._replace(digest=blake3(SPARSE).digest())
WANTED = [
    MOVED._replace(path=at(b"new/moved")),
    COPIED._replace(path=at(b"new/copied")),
    COPIED._replace(path=at(b"new/again"), mtime=5),
    COMES,
    COMES._replace(path=at(b"new/twin")),
    HOLES._replace(path=at(b"new/deep/holes")),
]
REUSES = {
    WANTED[0].path: Reuse(MOVED.path, T0, most_links=1),
    WANTED[1].path: Reuse(COPIED.path, T0),
    WANTED[2].path: Reuse(COPIED.path, T0, sure=False),
    WANTED[4].path: Reuse(COMES.path, T0, twin=True),
    WANTED[5].path: Reuse(HOLES.path, T0),
}
ORIGIN = dict(zip(WANTED, (MOVED, COPIED, COPIED, COMES, COMES, HOLES), strict=True))


class Reusing:
    """A tree with most of what is wanted under other names."""

    def __init__(self, threads: int, ground: Ground) -> None:
        """Steps always come in the same order with one thread."""
        self.dest, self.threads = ground.folder / "dest", threads
        self.folders = [self.dest]
        self.dest.mkdir()
        for source in (MOVED, COPIED, HOLES):
            path = self.dest / os.fsdecode(source.path)
            data = _data(source)
            begin = len(data) - len(data.lstrip(b"\0"))
            with path.open("wb") as target:
                target.seek(begin)
                target.write(data[begin:])
            path.chmod(source.mode)
            os.utime(path, ns=(T0, T0))
        self.sources = self._sources()

    def _sources(self) -> list[object]:
        """The attributes that a reuse must not change, the number of names included."""
        facts: list[object] = [(self.dest / "copied").stat().st_nlink]
        for name in ("moved", "copied"):
            status = (self.dest / name).stat()
            content = (self.dest / name).read_bytes()
            facts += [content, status.st_mode, status.st_mtime_ns]
        return facts

    def run(self) -> str:
        try:
            with _staging(self.dest) as staging, Tree(self.dest) as tree:
                return brought(tree, staging, self.threads)
        except HuaiError as error:
            return error.message

    def only_right_content_is_ready(self, hit: Hit) -> str:
        """A refused file is transferred."""
        assert hit.killed or hit.result in ("", "missing") or hit.names_the_reason
        self._prove_ready()
        return "" if hit.killed else "came" if hit.result == "" else "missing"

    def all_is_ready(self, _: Hit) -> None:
        with _staging(self.dest) as staging, Tree(self.dest) as tree:
            staging.prune(WANTED)
            staging.recover(WANTED)
            assert brought(tree, staging) == ""
            assert all(staging.ready(each) for each in WANTED)
        self._prove_ready()
        assert self._sources() == self.sources

    def _prove_ready(self) -> None:
        with _staging(self.dest) as staging:
            for file in WANTED:
                if staging.ready(file):
                    content = ready(staging, file).read_bytes()
                    assert blake3(content).digest() == file.digest, file


reusing = partial(Reusing, 1)
reusing_by_three = partial(Reusing, 3)


def _data(file: File) -> bytes:
    return SPARSE if file == HOLES else content(file.path, file.size)


def brought(tree: Tree, staging: Staging, threads: int = 1) -> str:
    """Bring everything; "missing" if something did not come."""

    def transfer(files: Sequence[File]) -> Outcome:
        absent = [each for each in files if not staging.ready(each)]
        missing = [each for each in absent if not _transferred(staging, each)]
        return Outcome([each for each in files if each not in missing], missing, [], 0)

    policy = ReusePolicy(1 << 62, hardlink=False, threads=threads)
    with LocalContent(tree, staging, policy) as local:
        reused = local.stage_local(WANTED, REUSES)
        outcome = Outcome(reused.ready, [], [], 0) + transfer(reused.absent)
        local.copy_twins(reused.twins, WANTED, REUSES)
        outcome += transfer(reused.twins)
    assert {*outcome.arrived, *outcome.missing} == {*WANTED}
    assert all(staging.ready(each) for each in outcome.arrived)
    return "missing" if outcome.missing else ""


def _transferred(staging: Staging, file: File) -> bool:
    try:
        run = staging.incoming.begin(())
        target = incoming(staging, run) / os.fsdecode(file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_data(ORIGIN[file]))
        os.utime(target, ns=(file.mtime, file.mtime))
        return staging.incoming.accept([file], run) == [Arrival.ARRIVED]
    except OSError:
        return False
