"""How long reading a whole tree takes, side by side: find, rsync, both scanners.

    python tests/bench/scan_bench.py DIR [--entries N] [--cold] [--rounds N]

Makes a tree of N entries in DIR (once; later runs take it as it is), prints medians.  `--cold`
drops the page cache before every run and needs root.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_PROJECT), *(str(_PROJECT / part) for part in ("schema", "server"))]

from huai_server.scan import native, python  # noqa: E402 (after the path is known)
from huai_server.scan.types import ScannedDirectory, ScanOptions, Unreadable  # noqa: E402
from tests.bench.trees import make_tree  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--entries", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    root = options.folder / f"tree-{options.entries}"
    if not root.exists():
        began = time.perf_counter()
        make_tree(root, options.entries)
        print(f"made {options.entries} entries in {time.perf_counter() - began:.1f} s")
    _print_table(root, _contestants(root), options.rounds, cold=options.cold)


def _contestants(root: Path) -> dict[str, Callable[[], int]]:
    find = ["find", str(root), "-printf", "%P %s %T@ %m %U %G\\n"]
    runs: dict[str, Callable[[], int]] = {
        "find -printf": lambda: _run(find),
        "rsync -r --list-only": lambda: _run(["rsync", "-r", "--list-only", f"{root}/"]),
    }
    if native.library() is not None:
        for threads in (1, 2, 4, 8):
            runs[f"native, {threads} threads"] = partial(_native, root, threads)
    runs["python"] = lambda: _count(python.scan(root, ScanOptions()))
    return runs


def _print_table(
    root: Path, runs: dict[str, Callable[[], int]], rounds: int, *, cold: bool
) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):  # interleaved, so that a slow minute hits everybody
        for name, run in runs.items():
            if cold:
                os.sync()
                Path("/proc/sys/vm/drop_caches").write_text("3\n")
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    entries = _count(python.scan(root, ScanOptions()))
    base = statistics.median(seconds["find -printf"])
    print(f"{entries} entries, {'cold' if cold else 'warm'}, median of {rounds}")
    for name, taken in seconds.items():
        median = statistics.median(taken)
        rate = entries / median / 1000
        print(f"{name:22} {median:7.3f} s {rate:7.0f} k/s {median / base:6.2f} x find")


def _native(root: Path, threads: int) -> int:
    loaded = native.library()
    if loaded is None:
        raise SystemExit("the native scanner is not built")
    return _count(native.scan(loaded, root, ScanOptions(threads=threads)))


def _count(found: Iterable[ScannedDirectory | Unreadable]) -> int:
    """Entries, without keeping what was found."""
    entries = 0
    for each in found:
        if isinstance(each, ScannedDirectory):
            entries += 1 + each.listing.leaves.count(b"\n")
    return entries


def _run(command: list[str]) -> int:
    subprocess.run(
        command, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "LC_ALL": "C"}
    )
    return 0


if __name__ == "__main__":
    main()
