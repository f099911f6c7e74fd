"""How a program of huai ends: the one place that prints errors and picks the exit code.

Not pure.  A `HuaiError` shows its message and hint, anything unexpected its traceback.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from huai_schema.errors import ExitCode, HuaiError


class _TerminatedError(BaseException):
    """SIGTERM, so that what must be cleaned up is."""


def conclude(
    program: str,
    run: Callable[[], int | None],
    *,
    usage_error: type[Exception],
    abort: type[Exception],
    as_json: bool,
) -> int:
    """Call `run`; returns the exit code after telling the user what went wrong, if anything.

    `usage_error` is what the command line library raises for wrong arguments, `abort` what it
    makes of Ctrl-C.
    """
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return int(run() or ExitCode.OK)
    except HuaiError as error:
        tell(program, error, as_json=as_json)
        return int(error.exit_code)
    except usage_error as error:
        _say(program, f"{error}\n  see {program} --help")
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, abort):
        _say(program, ExitCode.INTERRUPTED.meaning)
        return int(ExitCode.INTERRUPTED)
    except _TerminatedError:
        _say(program, ExitCode.TERMINATED.meaning)
        return int(ExitCode.TERMINATED)
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away (`| head`): nobody is left to tell.  Click makes
        # an exit of it, and nothing else below a command line does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return int(ExitCode.OK)


def print_json(kind: str, **values: object) -> None:
    """One result as a line of JSON, in version 1 of its schema."""
    sys.stdout.write(json.dumps({"v": 1, "type": kind, **values}) + "\n")
    sys.stdout.flush()


def tell(program: str, error: HuaiError, *, as_json: bool) -> None:
    """Show an expected failure."""
    if as_json:
        code = error.exit_code
        print_json("error", code=int(code), name=code.name, message=error.message, hint=error.hint)
    _say(program, f"{error.message}\n  {error.hint}" if error.hint else error.message)


def _say(program: str, message: str) -> None:
    with suppress(OSError):  # nobody listens; the exit code tells all the same
        sys.stderr.write(f"{program}: {message}\n")


def _terminated(_number: int, _frame: object) -> None:
    raise _TerminatedError
