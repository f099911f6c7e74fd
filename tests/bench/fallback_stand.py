"""Daemons that serve one tree in several ways, each with its reads and its CPU time counted."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.bench import trees
from tests.bench.disk_reads import DiskReads, Reads
from tests.bench.processor import ProcessorTime
from tests.bench.programs import Program
from tests.bench.stand import Stand

KINDS = ("real", "sparse", "erofs")
"""The first is a stock rsyncd on the tree itself."""
SMALL = "small"
"""A module of some files: listing it brings all of rsync into memory."""
_SMALL_ENTRIES = 2000
_GRACE = 60


class Cost(NamedTuple):
    """The cost of a daemon's processes."""

    reads: Reads
    cpu: float
    """Seconds."""


class Served(NamedTuple):
    """A daemon, and the modules' base URL; each kind is a module."""

    url: str
    reads: DiskReads
    processor: ProcessorTime
    server: Program

    def cost(self) -> Cost:
        """So far."""
        return Cost(self.reads.now(), self.processor.now())

    def commit(self) -> None:
        """Commit the tree, and with it bring the attr trees along."""
        for kind in KINDS[1:]:
            self.server.run("commit", kind)


@contextlib.contextmanager
def memory_file_system(folder: Path) -> Iterator[Path]:
    """A tmpfs of our own."""
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=755,nr_inodes=0", "tmpfs", folder], check=True
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def upstream(stand: Stand, folder: Path) -> Iterator[Program]:
    """A state root with a module for each kind, committed; its attr trees go to `folder`."""
    root = stand.folder / f"server-{folder.name}"
    root.mkdir()
    lines = ["[fallback]", f'folder = "{folder}"', 'address = "127.0.0.1"', "port = 0"]
    lines += ['uid = "root"', 'gid = "root"', 'log_file = "/dev/null"']
    small = root / "tree"
    stand.make(trees.make_tree, small, _SMALL_ENTRIES)
    lines += [f"[modules.{SMALL}]", f'path = "{small}"']
    for kind in KINDS:
        lines += [f"[modules.{kind}]", f'path = "{stand.tree}"', 'digest = "off"']
        lines += [f'fallback = {{ kind = "{kind}" }}']
    (root / "server.toml").write_text("\n".join(lines) + "\n")
    server = Program("huai-server", root)
    server.run("commit", SMALL)
    for kind in KINDS[1:]:
        server.run("commit", kind)
    try:
        yield server
    finally:
        for kind in KINDS[1:]:
            server.run("remove", kind)


@contextlib.contextmanager
def served(stand: Stand, server: Program) -> Iterator[Served]:
    """`huai-server fallback serve`; what is counted is rsync, not the program that watches it."""
    with DiskReads("fallback", stand.folder) as reads, ProcessorTime("fallback") as processor:
        process = subprocess.Popen(
            server.command("fallback", "serve", "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = _port(process)
            pattern = f"rsync --daemon.*--port={port} "
            listing = subprocess.run(
                ["pgrep", "-f", pattern], capture_output=True, text=True, check=True
            )
            for listener in listing.stdout.split():
                reads.adopt(int(listener))
                processor.adopt(int(listener))
            yield Served(f"rsync://127.0.0.1:{port}", reads, processor, server)
        finally:
            process.terminate()
            process.wait(_GRACE)
            time.sleep(0.1)  # the kernel empties its groups a little later


def _port(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == "listening":
            return int(event["port"])
    raise RuntimeError("huai-server fallback serve did not start")
