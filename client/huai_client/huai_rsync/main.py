"""The program `huai-rsync`.

Only composes: it parses the arguments, finds the module, and runs huai or the real rsync.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from huai_client.huai_rsync import exec_rsync as handover
from huai_client.huai_rsync.environment import EXPLAIN, ROOT
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.parse import parse_arguments
from huai_client.huai_rsync.request import Passthrough, RsyncRequest
from huai_program.ending import conclude, leave
from huai_program.output import Output
from huai_schema.errors import ExitCode

_ABOUT = (["--version"], ["-V"], ["--help"])
"""The calls of people who ask about the program; `-VV` is for programs."""
_PATIENCE_SECONDS = 10.0
"""The seconds that the real rsync waits for a sync of the same tree."""


def main() -> None:
    """Run the program; end with rsync's exit code, and its message after a failure."""
    output = Output()
    code = output.code(conclude("huai-rsync", lambda: _run(sys.argv[1:]), as_json=False))
    if code:
        from huai_client.huai_rsync.environment import ENDINGS

        ending = next(ending for kind, ending in ENDINGS.items() if kind == code)
        code = ending.code
        if code:
            sys.stderr.write(f"rsync error: {ending.text} (code {code}) [huai-rsync]\n")
    leave(code)


def _run(arguments: Sequence[str]) -> ExitCode:
    """Sync, or answer a question about the program; run rsync in its place if huai cannot do it."""
    if handover.is_below():
        handover.exec_rsync(arguments)
    if [*arguments] in _ABOUT:
        return _about(arguments)
    request = parse_arguments(arguments)
    root = _root()
    try:
        return _sync(request, root)
    except RsyncNeededError as real:
        _before_exec(request, root, real)
        handover.exec_rsync(arguments)


def _about(arguments: Sequence[str]) -> ExitCode:
    """Print the real rsync's output, whose first lines scripts read, then a note on huai-rsync."""
    from importlib.metadata import version

    code = handover.run_rsync(arguments)
    sys.stdout.write(
        f"\nThis is huai-rsync, of huai {version('huai')}, in place of rsync: see huai-rsync(1).\n"
    )
    return ExitCode.OK if code == 0 else ExitCode.USAGE


def _sync(request: RsyncRequest | Passthrough, root: Path) -> ExitCode:
    """Run a sync for an rsync command line; raises `RsyncNeededError` if rsync has to run it."""
    if isinstance(request, Passthrough):
        raise RsyncNeededError(request.reason)
    from huai_client.huai_rsync.sync import sync

    return sync(request, root)


def _root() -> Path:
    """Return the state root that the environment names, or the default one."""
    from huai_client.config.load import default_root

    path = os.environ.get(ROOT)
    return (Path(path) if path else default_root()).absolute()


def _before_exec(request: RsyncRequest | Passthrough, root: Path, real: RsyncNeededError) -> None:
    """Report why the real rsync runs; record that it changes the trees of modules, if it may.

    The next sync of these compares the whole tree, unless rsync changes one file only.  Waits for a
    sync that runs there, and raises `LockedError` if it does not end.
    """
    wish = os.environ.get(EXPLAIN, "")
    if wish == "yes":
        sys.stderr.write(f"huai-rsync: the real rsync runs: {real.reason}\n")
    if not request.targets:
        return
    from huai_client.config.load import load
    from huai_client.huai_rsync.cache import force_full_compare
    from huai_client.huai_rsync.eligibility import replaces_one_file, touched
    from huai_client.state import handovers
    from huai_client.state.paths import module_places
    from huai_program.configuration import ConfigError

    try:
        names = list(touched(load(root), request.targets))
    except ConfigError as error:
        sys.stderr.write(f"huai-rsync: {error.message}\n")
        return
    if request.harmless:
        return
    one_file = replaces_one_file(request)
    for name in names:
        places = module_places(root, name)
        first = not one_file and handovers.add(places.handovers, real.reason, int(time.time()))
        # Cron mails all output, so without --quiet mirror runs print this, and one call of a day.
        if not wish and not request.quiet and (request.deletes or first):
            sys.stderr.write(f"huai-rsync: {name}: the real rsync runs: {real.reason}\n")
        if not one_file:
            force_full_compare(places, wait=_PATIENCE_SECONDS)
