"""The figures, ours and the peer's side by side in one run: `./dev bench`.

Prints a Markdown table, and appends a line of JSON for each figure to a file, for comparison
with later runs.  Nothing is asserted.  Everything made is removed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from math import inf
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PARTS = ("schema", "program", "server", "client", "native/python")
sys.path[0:1] = [str(PROJECT), *(str(PROJECT / part) for part in PARTS)]

from tests.bench.figures import append_json, markdown  # noqa: E402 (after the path is known)
from tests.bench.programs import install  # noqa: E402
from tests.bench.stand import Stand, show_progress  # noqa: E402

DEFAULT = ("fetch", "idle", "churn", "http", "scale")
"""The quicker ones; the other modules here are asked for by name."""


def main() -> None:
    """Measure what was asked for."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # tidy up then too
    folder = Path(tempfile.mkdtemp(prefix="huai-bench-", dir=options.dir))
    programs = install(folder / "installed", (PROJECT / part for part in PARTS))
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    all_figures = []
    try:
        conditions = {"cold": options.cold, "line": options.line}
        chosen = {"cases": frozenset(options.case), "minutes": options.minutes, **conditions}
        chosen["pages"] = PROJECT / "docs" if options.renew else options.json.parent
        with Stand(folder, options.entries, options.rounds, **chosen) as stand:
            for name in options.names or DEFAULT:
                began = time.monotonic()
                bench_figures = list(import_module(f"tests.bench.{name}_bench").figures(stand))
                show_progress(
                    f"{name}: {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}"
                )
                circumstances = {"entries": options.entries, **conditions}
                append_json(options.json, name, bench_figures, options.rounds, **circumstances)
                all_figures += bench_figures
        cache = "cold" if options.cold else "warm"
        line = "a line of 40 ms and 100 Mbit/s, " if options.line else ""
        print(
            f"{options.entries:,} entries, {line}{cache} cache, medians of {options.rounds} "
            f"rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
        )
        print(markdown(all_figures, options.rounds), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n", 1)[0])
    benches = sorted(path.stem[:-6] for path in Path(__file__).parent.glob("*_bench.py"))
    default = f"some of {', '.join(benches)}; default {', '.join(DEFAULT)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=default)
    parser.add_argument("--entries", type=int, default=300_000, help="of the tree; default 300000")
    parser.add_argument("--rounds", type=int, default=3, help="medians are of so many; default 3")
    parser.add_argument("--dir", type=Path, help="trees are made below; default $TMPDIR or /tmp")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="NAME",
        help="only this case, of founding, huge, shards and upstream; repeatable",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=inf,
        help="what goes on and on, the year of upstream and downstreams, ends after so many",
    )
    parser.add_argument(
        "--cold", action="store_true", help="drop the page cache before every run; needs root"
    )
    parser.add_argument(
        "--line",
        action="store_true",
        help="HTTP and rsync go through a proxy of 40 ms round trip and 100 Mbit/s",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=PROJECT / "build" / "bench.jsonl",
        metavar="FILE",
        help="append a line for each figure to FILE; default build/bench.jsonl",
    )
    parser.add_argument(
        "--renew",
        action="store_true",
        help="founding and shards write plots into docs/, not next to the file of --json",
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(benches):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
