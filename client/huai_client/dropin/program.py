"""`huai-rsync`: the program.

Only composes: what the arguments mean, whether a module is meant, and who does it.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from huai_client.dropin import handover
from huai_client.dropin.call import Call, Foreign
from huai_client.dropin.command_line import parse
from huai_client.dropin.handover import RealRsyncError
from huai_schema.errors import ExitCode
from huai_schema.program.ending import conclude
from huai_schema.program.output import Output
from huai_schema.program.signals import leave_quietly

_EXPLAIN = "HUAI_RSYNC_EXPLAIN"
_PATIENCE_SECONDS = 10.0
"""How long the real rsync waits for a sync of the same tree."""


class _NeverError(Exception):
    """Raised by nobody: there is no command line library here."""


def main() -> None:
    """The program."""
    output = Output()
    code = conclude(
        "huai-rsync",
        lambda: _run(sys.argv[1:]),
        usage_error=_NeverError,
        abort=_NeverError,
        as_json=False,
    )
    leave_quietly()
    code = output.code(code)
    if code:
        from huai_client.dropin.codes import ENDINGS

        ending = next(ending for kind, ending in ENDINGS.items() if kind == code)
        code = ending.code
        if code:
            sys.stderr.write(f"rsync error: {ending.text} (code {code}) [huai-rsync]\n")
    sys.exit(code)


def _run(arguments: Sequence[str]) -> ExitCode:
    if handover.is_below():
        handover.go(arguments)
    call = parse(arguments)
    root = _root()
    try:
        return _sync(call, root)
    except RealRsyncError as real:
        _step_aside(call, root, real)
        handover.go(arguments)


def _sync(call: Call | Foreign, root: Path) -> ExitCode:
    if isinstance(call, Foreign):
        raise RealRsyncError(call.reason)
    from huai_client.dropin.syncing import sync

    return sync(call, root)


def _root() -> Path:
    """As `huai-client` finds it."""
    from huai_client.config import default_root

    given = os.environ.get("HUAI_CLIENT_ROOT")
    return (Path(given) if given else default_root()).absolute()


def _step_aside(call: Call | Foreign, root: Path, real: RealRsyncError) -> None:
    """Say why the real rsync runs, and record that it changes trees, if they are ours."""
    explained = os.environ.get(_EXPLAIN) == "yes"
    if explained:
        sys.stderr.write(f"huai-rsync: the real rsync runs: {real.reason}\n")
    if not call.targets:
        return
    from huai_client.config import load
    from huai_client.dropin.memory import distrust
    from huai_client.dropin.modules import touched
    from huai_client.places import module_places
    from huai_schema.program.configuration import ConfigError

    try:
        names = list(touched(load(root), call.targets))
    except ConfigError as error:
        sys.stderr.write(f"huai-rsync: {error.message}\n")
        return
    for name in names:
        if not explained:
            sys.stderr.write(f"huai-rsync: {name}: the real rsync runs: {real.reason}\n")
        if not call.harmless:
            distrust(module_places(root, name), wait=_PATIENCE_SECONDS)
