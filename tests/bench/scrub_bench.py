"""Reading content again: `huai-server scrub --full` beside `b3sum` and `cat`, CPU time a GiB.

All read the same files, by one thread.  b3sum is found on PATH, or named by HUAI_BENCH_B3SUM.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.programs import Program
from tests.bench.spending import cpu, spend, take_turns
from tests.bench.stand import Stand, say

_FILES = 16
_BYTES = 64 << 20
_GIB = _FILES * _BYTES / (1 << 30)
_B3SUM = "HUAI_BENCH_B3SUM"


def figures(stand: Stand) -> Iterator[Figure]:
    """The whole process."""
    tree = stand.folder / "scrubbed"
    make_files(tree)
    server = Program("huai-server", stand.folder / "scrub-state")
    server.run("add", "scrubbed", tree)
    server.run("commit", "scrubbed")
    files = sorted(map(str, tree.iterdir()))
    contestants = {
        "scrub": lambda: spend(server.command("scrub", "scrubbed", "--full", "--quiet")),
        "cat": lambda: spend(["cat", *files]),
    }
    b3sum = os.environ.get(_B3SUM) or shutil.which("b3sum")
    if b3sum:
        words = [b3sum, "--num-threads", "1", "--no-mmap", *files]
        contestants["b3sum"] = lambda: spend(words)
    else:
        say(f"b3sum was not measured: {_B3SUM} has to name it")
    found = take_turns(contestants, stand.rounds, stand.rest)
    ours = cpu(found.pop("scrub")) / _GIB
    for name, samples in found.items():
        yield Figure("scrub, CPU time a GiB", ours, "s", name, cpu(samples) / _GIB)


def make_files(tree: Path) -> None:
    """Large files of content that does not repeat."""
    tree.mkdir()
    for number in range(_FILES):
        (tree / f"file-{number:02}").write_bytes(os.urandom(_BYTES))
