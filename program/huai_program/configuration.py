"""Reads and edits TOML configuration files.

Errors name the key and the right spelling.  The package `config` of each program defines the values
and edits the text.
"""

import os
import pwd
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from huai_program.durable import replace_file
from huai_program.foreign_writers import find_foreign_writer, is_root_of_machine
from huai_program.locking import locked
from huai_schema.errors import ExitCode, HuaiError

T = TypeVar("T")
_PATIENCE_SECONDS = 10


class ConfigError(HuaiError):
    """An error for a configuration file that cannot be used."""

    exit_code = ExitCode.CONFIG


class ConfigWriteError(ConfigError):
    """An error for a configuration file that cannot be written."""

    exit_code = ExitCode.FILE_IO


class UnknownModuleError(HuaiError):
    """An error for a module that is not configured."""

    exit_code = ExitCode.UNKNOWN_MODULE


def find_module(modules: Mapping[str, T], name: str) -> T:
    """Return the module `name`; raises `UnknownModuleError` if it is not configured."""
    try:
        return modules[name]
    except KeyError:
        raise UnknownModuleError(
            f"no module {name!r} is configured", hint=closest(name, modules)
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a file, or no tables if it is missing.

    Raises `ConfigError` if it is unreadable, malformed or, for root, may be changed by others.
    """
    reject_foreign(path)
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint=_denial(path)) from error
    except (ValueError, RecursionError) as error:  # the parser raises subclasses of ValueError
        reason = str(error)
        message = f"{path}: {_repetition(text, reason) or reason}"
        raise ConfigError(message, hint=_toml_hint(reason)) from error


def reject_foreign(path: Path) -> None:
    """Raise `ConfigError` if this user is root, and another may change the file or its folders."""
    if not is_root_of_machine() or (writer := find_foreign_writer(path)) is None:
        return
    owner = user_name(writer.uid)
    raise ConfigError(
        f"{path}: root does not obey a file that another user may change: {writer.path} belongs to "
        f"{owner}, mode {writer.mode:04o}",
        hint=f"{writer.remedy}; or run this as {owner}" if writer.uid else writer.remedy,
    )


def _repetition(text: str, reason: str) -> str:
    """Return a message about a repeated key or table; empty for any other error."""
    from huai_program.repetition import repetition  # not loaded for a valid file

    return repetition(text, reason)


def _denial(path: Path) -> str:
    """Return a hint about the permissions that keep this user from reading `path`."""
    for place in (*reversed(path.parents), path):
        right = os.R_OK if place == path else os.X_OK
        try:
            if os.access(place, right, effective_ids=True):
                continue
            status = place.stat()
        except OSError:
            break
        owner, me = user_name(status.st_uid), user_name(os.geteuid())
        mode = stat.S_IMODE(status.st_mode)
        return (
            f"{place} belongs to {owner}, mode {mode:04o}, and this is {me}: run as {owner}, or "
            f"let {me} read it by its group (chgrp, chmod g+rX)"
        )
    return "check the permissions of the file and of the folders above it"


def user_name(uid: int) -> str:
    """Return the name of a user of this machine, or `user UID`."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _toml_hint(reason: str) -> str:
    """Return a hint for an error message of the TOML parser."""
    hints = {
        "Cannot overwrite a value": "a key is repeated in one table: keep one of them",
        "Cannot mutate immutable": "a key is repeated in one table: keep one of them",
        "Duplicate inline table key": "a key is repeated in one table: keep one of them",
        "Cannot declare": "a table is repeated: merge its keys into one",
        "Illegal character '\\n'": "a string ends on its line: is a quote missing?",
        "Invalid value": 'strings need quotes: key = "value"',
        "Expected '=' after a key": "each line must be key = value, or [table]",
    }
    matching = (hint for words, hint in hints.items() if words in reason)
    return next(matching, "the file must be TOML in UTF-8")


def closest(word: str, choices: Iterable[str]) -> str:
    """Return a hint with the choice closest to `word`, or with all choices."""
    ordered = sorted(choices)
    import difflib  # loaded only after a typing error

    near = difflib.get_close_matches(word, ordered, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(ordered) or 'none'}"


def rewrite(path: Path, change: Callable[[str], str], *, mode: int) -> None:
    """Replace the text of a file by what `change` returns for it, in one durable step.

    A lock file next to it excludes other edits, so `change` gets the current text; an empty one
    for a missing file.  `mode` is for a new file; an existing one loses the permission bits that
    are not in `mode`.  Raises `ConfigWriteError` if the file cannot be written, and
    `LockedError` if another edit takes more than 10 seconds.
    """
    try:
        with locked(path.with_name(f".{path.name}.lock"), wait=_PATIENCE_SECONDS):
            _rewrite(path.resolve(), change, mode)
    except OSError as error:
        raise ConfigWriteError(
            f"{path} cannot be written: {error.strerror}",
            hint="check the permissions of its folder, and the free space there",
        ) from error
    except UnicodeError as error:
        raise ConfigError(f"{path}: {error}", hint="write the file in UTF-8") from error


def edit_modules(path: Path, change: Callable[[Any], object], *, mode: int) -> None:
    """Let `change` edit the table `modules` of a configuration file, which keeps its comments.

    The table is made if it is missing.  The file is written as by `rewrite`, with its errors.
    """
    import tomlkit  # loads slowly, and few commands write configuration

    def edit(text: str) -> str:
        """Return the text with changed modules."""
        document = tomlkit.parse(text)
        change(document.setdefault("modules", tomlkit.table(is_super_table=True)))
        return tomlkit.dumps(document)

    rewrite(path, edit, mode=mode)


def insert_module(path: Path, name: str, values: dict[str, Any], *, hint: str, mode: int) -> None:
    """Add the table of a module to a configuration file; written as by `rewrite`.

    Raises `ConfigError` with `hint` if the name exists, also if another process has just added it.
    """

    def insert(modules: Any) -> None:
        """Add the table; raises `ConfigError` if the name exists."""
        if name in modules:
            raise ConfigError(f"module {name!r} exists already", hint=hint)
        modules[name] = values

    edit_modules(path, insert, mode=mode)


def _rewrite(path: Path, change: Callable[[str], str], mode: int) -> None:
    """Replace a file's text by that of `change`; `mode` limits its permissions."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        allowed = stat.S_IMODE(path.stat().st_mode) if path.exists() else mode
        new = change(text).encode()
        replace_file(path, new, temporary, permissions=allowed & mode)
    finally:
        temporary.unlink(missing_ok=True)
