"""The demo's story: a mirror is committed, served, synced, changed, and synced again.

Composes only; prints what it does as it goes.  Rule to keep: whatever ends it, nothing of it
is left behind, unless the user said --keep.
"""

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from tests.demo.churn import churn
from tests.demo.processes import DemoError, Processes, end_kept
from tests.demo.proofs import git_ids_are_equal, rsync_finds_no_difference, serve_hands_out_files
from tests.demo.stage import HOOK, MODULE, PROGRAMS, RSYNC, Stage, environment
from tests.demo.table import Row, reading, table
from tests.demo.tree import base_folders, make_tree, working_folder

_PREFIX = "huai-demo-"
_MOST_ENTRIES = 30_000
_INTERRUPTED = 130
_DELETE_SECONDS = 300


def run_demo(arguments: list[str]) -> int:
    """Run the demo; return its exit code."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    os.umask(0o022)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # each step is printed before it is done
    try:
        if options.stop:
            return _stop()
        return _in_folder(options.entries, keep=options.keep)
    except DemoError as error:
        print(f"demo: failed: {error}")
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; nothing is left behind")
        return _INTERRUPTED


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.partition("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--keep", action="store_true", help="leave it running, to play with")
    choice.add_argument("--stop", action="store_true", help="end and delete what --keep has left")
    parser.add_argument(
        "--entries",
        type=int,
        default=_MOST_ENTRIES,
        metavar="N",
        help="copy at most so many entries (default %(default)s)",
    )
    return parser.parse_args(arguments)


def _in_folder(entries: int, *, keep: bool) -> int:
    """Run the demo in a folder that is deleted at the end."""
    if not (PROGRAMS / "huai-client").exists():
        raise DemoError("huai is not installed next to this Python: start it as ./dev demo")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=working_folder()))
    processes = Processes(folder, environment(folder))
    is_kept = False
    try:
        stage = _play(folder, processes, entries)
        if keep:
            processes.keep()
            is_kept = True
            _explain(stage)
    finally:
        if not is_kept:
            _ignore_signals()
            processes.end()
            _delete(folder)
    return 0


def _play(folder: Path, processes: Processes, most: int) -> Stage:
    begin = time.monotonic()
    stage = Stage(folder, processes)
    _print_step(f"A mirror: real files of this machine, in {stage.mirror}")
    size = make_tree(stage.mirror, processes, most)
    print(f"    {size}")
    stage.huai_copy.mkdir()

    _print_step(
        "The upstream commits its metadata; `huai-server serve` and a stock rsyncd are running"
    )
    options = ("--content-url", stage.content_url, "--serve-content")
    stage.run("huai-server", "add", MODULE, stage.mirror, *options)
    stage.run("huai-server", "commit", MODULE)
    _print_step("A downstream fetches all of it; another one does so with plain rsync")
    stage.run("huai-client", "add", MODULE, stage.url, stage.huai_copy)
    rows = [Row("first sync", size.entries, size.entries, stage.sync(), stage.rsync())]

    _print_step("The mirror is updated; its post-sync hook commits again")
    change = churn(stage.mirror, size.entries)
    print(f"    {change}")
    stage.run(HOOK, MODULE)
    _print_step("Both downstreams follow")
    entries = size.entries + change.new - change.deleted
    rows.append(Row("0.5 % changed", entries, sum(change), stage.sync(), stage.rsync()))
    _print_step("And ask again, with nothing new")
    rows.append(Row("nothing new", entries, 0, stage.sync(), stage.rsync()))

    _print_step("Proofs")
    print("    proved:", rsync_finds_no_difference(stage.mirror, stage.huai_copy, processes))
    print("    proved:", git_ids_are_equal(stage.huai_copy, stage.content_url, processes))
    print("    proved:", serve_hands_out_files(stage.mirror, stage.url))
    _print_step(f"Figures ({time.monotonic() - begin:.0f} s in all)")
    print(table(rows))
    print(reading(rows))
    return stage


def _explain(stage: Stage) -> None:
    variables = environment(stage.folder)
    _print_step("Left running, to play with")
    for name in ("HUAI_ROOT", "HUAI_CLIENT_ROOT", "HUAI_SERVER"):
        print(f"    export {name}={variables[name]}")
    print(f"    export PATH={PROGRAMS}:$PATH")
    print(f"    # change something in {stage.mirror}, then:")
    print(f"    {HOOK} {MODULE}; huai-client plan {MODULE}; huai-client sync {MODULE}")
    print(f"    huai-client verify --content {MODULE}; huai-server check {MODULE}")
    print(f"    {' '.join(RSYNC)} {stage.plain_url}/ {stage.rsync_copy}/")
    print(f"    git clone --bare {stage.url}/git/{MODULE}.git; curl {stage.url}/api/v1/modules")
    print("    ./dev demo --stop    # ends it, and deletes all of it")


def _stop() -> int:
    """End every demo that this user has kept."""
    stopped = 0
    for base in dict.fromkeys(base_folders()):
        for folder in base.glob(f"{_PREFIX}*"):
            if folder.stat().st_uid == os.geteuid() and end_kept(folder):
                _delete(folder)
                print(f"demo: ended, and deleted {folder}")
                stopped += 1
    if not stopped:
        print("demo: none was kept")
    return 0


def _delete(folder: Path) -> None:
    # Read-only folders are deleted as well; rm is the quickest with many files.
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", folder], check=True, timeout=_DELETE_SECONDS)
    subprocess.run(["rm", "-rf", "--", folder], check=True, timeout=_DELETE_SECONDS)


def _print_step(text: str) -> None:
    print(f"\n{text}")


def _ignore_signals() -> None:
    """Keep a second Ctrl-C from interrupting the clean-up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
