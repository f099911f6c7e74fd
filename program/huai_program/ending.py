"""Ends a program of huai: the one place that prints errors and chooses the exit code.

A `HuaiError` is printed as message and hint, any other exception as a traceback.  Errors of a
failing disk may come from any system call, so these are printed with a hint, too.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from huai_program.disk_hints import DISK_HINTS
from huai_program.signals import heed, leave_quietly
from huai_schema.errors import ExitCode, HuaiError

_JSON_VERSION = 1
"""The version of the schema; JSON.md says when it grows."""


class _TerminatedError(BaseException):
    """An exception for SIGTERM, so that the interrupted code cleans up."""


def conclude(
    program: str,
    run: Callable[[], int | None],
    *,
    as_json: bool,
    usage_errors: tuple[type[Exception], ...] = (),
    aborts: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    **about: object,
) -> int:
    """Call `run`, print its error if it fails, and return the exit code.

    `program` is its name in messages.  `usage_errors` are the library's exceptions for wrong
    arguments, `aborts` those for Ctrl-C.  `about` are values for a JSON error, such as the module.
    An unexpected exception is raised.  After the return, a signal ends the process at once: nothing
    would catch its exception.
    """

    def failed(code: ExitCode, message: str = "", hint: str = "") -> int:
        """Report a failure; return its exit code."""
        leave_quietly()
        _report(program, code, message or code.meaning, hint, about if as_json else None)
        return int(code)

    try:
        return _call(run)
    except HuaiError as error:
        return failed(error.exit_code, error.message, error.hint)
    except OSError as error:
        hint = DISK_HINTS.get(error.errno or 0)
        if hint is None:
            raise
        where = (
            f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        )
        return failed(ExitCode.FILE_IO, f"{where}{error.strerror}", hint)
    except usage_errors as error:
        return failed(ExitCode.USAGE, _usage(error), f"see {_command_name(program, error)} --help")
    except aborts:
        return failed(ExitCode.INTERRUPTED)
    except _TerminatedError:
        return failed(ExitCode.TERMINATED)
    except SystemExit as leaving:
        # Click turns a broken pipe into an exit.  Our output never breaks (`output`), so the error
        # is from another pipe, and unexpected.
        raise leaving.__context__ or leaving from None


def _call(run: Callable[[], int | None]) -> int:
    """Call `run` with signals as exceptions, and return its exit code."""
    heed(signal.SIGTERM, _terminated)
    heed(signal.SIGINT, signal.default_int_handler)
    code = int(run() or ExitCode.OK)
    leave_quietly()
    return code


def leave(code: int) -> NoReturn:
    """End the process with `code`; the caller has flushed the standard streams (`Output.code`).

    A successful run skips Python's teardown, which takes longer than many runs.  A failed run may
    have left threads for which Python has to wait.
    """
    if code == ExitCode.OK:
        os._exit(code)
    sys.exit(code)


def _usage(error: Exception) -> str:
    """Return the library's message about a wrong command line."""
    formatted = getattr(error, "format_message", None)
    return str(formatted() if callable(formatted) else error)


def _command_name(program: str, error: Exception) -> str:
    """Return the program and its command, as far as the library knows it."""
    return str(getattr(getattr(error, "ctx", None), "command_path", None) or program)


def json_line(kind: str, **values: object) -> str:
    """Return one line of JSON and its newline: `values`, with `kind` as "type" (docs/JSON.md)."""
    import json  # few runs print JSON

    return json.dumps({"v": _JSON_VERSION, "type": kind, **values}) + "\n"


def print_json(kind: str, **values: object) -> None:
    """Print an event as a line of JSON, and flush."""
    sys.stdout.write(json_line(kind, **values))
    sys.stdout.flush()


def report_error(program: str, error: HuaiError, *, as_json: bool) -> None:
    """Print an error on standard error, with `as_json` also on standard output; does not exit."""
    _report(program, error.exit_code, error.message, error.hint, {} if as_json else None)


def _report(
    program: str, code: ExitCode, message: str, hint: str, about: dict[str, object] | None
) -> None:
    """Print an error on standard error; if `about` is given, also as JSON on standard output."""
    if about is not None:
        values = {"code": int(code), "name": code.name, "message": message, "hint": hint}
        print_json("error", **about, **values)
    _write_message(program, f"{message}\n  {hint}" if hint else message)


def _write_message(program: str, message: str) -> None:
    """Write a message to standard error; a stream that fails is ignored."""
    with suppress(OSError):  # without a reader the exit code still says it
        sys.stderr.write(f"{program}: {message}\n")


def _terminated(_number: int, _frame: object) -> None:
    """Raise `_TerminatedError`, in place of an end by the signal."""
    raise _TerminatedError
